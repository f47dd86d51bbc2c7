package spawner

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hostRoom reads what is in use. Threads count as processes do: each takes a pid.
func hostRoom() (room, error) {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return room{}, err
	}
	r := room{}
	if r.pids, err = tasks(string(load)); err != nil {
		return room{}, err
	}
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		bound, err := readNumber(file)
		if err != nil {
			return room{}, err
		}
		if r.maxPIDs == 0 || bound < r.maxPIDs {
			r.maxPIDs = bound
		}
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return room{}, err
	}
	if limit.Cur < 1<<30 {
		r.maxFiles = int(limit.Cur)
	}
	if r.files, err = openFiles(); err != nil {
		return room{}, err
	}
	return r, nil
}

// openFiles counts the descriptors of this process. Since Linux 6.2 the kernel says
// it as the size of the directory; to list a thousand children's takes a thousand
// times as long.
func openFiles() (int, error) {
	const dir = "/proc/self/fd"
	st, err := os.Stat(dir)
	if err != nil {
		return 0, err
	}
	if n := int(st.Size()); n > 0 {
		return n, nil
	}
	list, err := os.ReadDir(dir)
	return len(list), err
}

// tasks reads the number of tasks of the host out of /proc/loadavg, where it
// stands behind that of the runnable ones: "0.1 0.2 0.3 1/234 5678".
func tasks(loadavg string) (int, error) {
	fields := strings.Fields(loadavg)
	if len(fields) == 5 {
		if _, all, ok := strings.Cut(fields[3], "/"); ok {
			if n, err := strconv.Atoi(all); err == nil {
				return n, nil
			}
		}
	}
	return 0, fmt.Errorf("/proc/loadavg: %q is not understood", loadavg)
}

func readNumber(file string) (int, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return n, nil
}
