package main
func (a *app) doctorCommand() *cobra.Command { return nil }
