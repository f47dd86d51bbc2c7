package metrics

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Process adds the usual metrics of this process. What cannot be read is left
// out.
func (r *Registry) Process(started time.Time) {
	single := func(kind Kind, name, help string, read func() (float64, bool)) {
		r.Func(kind, name, help, nil, func(emit func(float64, ...string)) {
			if v, ok := read(); ok {
				emit(v)
			}
		})
	}
	single(KindGauge, "process_start_time_seconds", "Start of this process, in seconds since the epoch.", func() (float64, bool) {
		return float64(started.UnixNano()) / 1e9, true
	})
	single(KindCounter, "process_cpu_seconds_total", "User and system CPU time of this process.", func() (float64, bool) {
		var u unix.Rusage
		err := unix.Getrusage(unix.RUSAGE_SELF, &u)
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, err == nil
	})
	single(KindGauge, "process_resident_memory_bytes", "Resident memory of this process.", func() (float64, bool) {
		statm, err := os.ReadFile("/proc/self/statm")
		fields := bytes.Fields(statm)
		if err != nil || len(fields) < 2 {
			return 0, false
		}
		pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
		return float64(pages) * float64(os.Getpagesize()), err == nil
	})
	single(KindGauge, "process_open_fds", "Open file descriptors of this process.", func() (float64, bool) {
		dir, err := os.Open("/proc/self/fd")
		if err != nil {
			return 0, false
		}
		defer dir.Close()
		names, err := dir.Readdirnames(-1)
		return float64(len(names) - 1), err == nil // less the one that reads
	})
	single(KindGauge, "go_goroutines", "Goroutines of this process.", func() (float64, bool) {
		return float64(runtime.NumGoroutine()), true
	})
}
