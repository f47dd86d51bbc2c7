package main

import (
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	served "github.com/hayward-dev/hayward/internal/daemon"
)

// tellManager tells systemd how the daemon is, if it was started by it: ready,
// leaving, and, when it asks for them, signs of life (sd_notify(3)).
func tellManager(o *served.Options) {
	say := func(state string) {
		// Without NOTIFY_SOCKET there is nobody to tell, which is no error.
		if _, err := daemon.SdNotify(false, state); err != nil {
			o.Log.Warn("systemd was not told", zap.String("state", state), zap.Error(err))
		}
	}
	ready := o.Ready
	o.Ready = func() {
		ready()
		say(daemon.SdNotifyReady + "\nSTATUS=serving")
	}
	o.Stopping = func() { say(daemon.SdNotifyStopping + "\nSTATUS=leaving") }
	patience, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		o.Log.Warn("the watchdog of systemd is not fed", zap.Error(err))
		patience = time.Duration(0)
	}
	o.Watchdog, o.Alive = patience, func(status string) { say(daemon.SdNotifyWatchdog + "\nSTATUS=" + status) }
}
