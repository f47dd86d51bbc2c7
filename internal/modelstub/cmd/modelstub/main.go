// Command modelstub serves a script as a stand-in for model APIs. It prints its
// address and serves until SIGINT or SIGTERM.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/hayward-dev/hayward/internal/modelstub"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "modelstub:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	listen := flag.String("listen", "127.0.0.1:0", "the address to listen on")
	script := flag.String("script", "", "the script, a JSON file")
	log := flag.String("log", "", "append every request to this file, one JSON object a line")
	flag.Parse()
	if *script == "" || flag.NArg() > 0 {
		flag.Usage()
		return errors.New("a -script is needed, and nothing else")
	}
	s, err := modelstub.Load(*script)
	if err != nil {
		return err
	}
	o := modelstub.Options{Listen: *listen}
	if *log != "" {
		f, openErr := os.OpenFile(*log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		o.Record = func(r modelstub.Request) {
			if err := json.NewEncoder(f).Encode(r); err != nil {
				fmt.Fprintln(os.Stderr, "modelstub:", err)
			}
		}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	server, err := modelstub.Start(s, o)
	if err != nil {
		return err
	}
	fmt.Println(server.URL())
	<-signals
	return server.Close()
}
