package daemon

import (
	"errors"

	"go.uber.org/zap"

	"github.com/hayward-dev/hayward/internal/kernelaudit"
)

// openAudit reads the kernel's log of refusals for the hints of failed commands,
// where it is on and may be read; nil otherwise.
func (d *daemon) openAudit() *kernelaudit.Log {
	log, err := kernelaudit.Open()
	if err != nil {
		if !errors.Is(err, kernelaudit.ErrOff) {
			d.log.Info("the kernel's audit log is not read", zap.Error(err))
		}
		return nil
	}
	d.onClose(func() {
		if err := log.Close(); err != nil {
			d.log.Warn("close the kernel's audit log", zap.Error(err))
		}
	})
	return log
}
