package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process identifies a process even if its process id is reused.
type Process struct {
	PID int `json:"pid"`
	// Started is the start time as the operating system states it. It is an opaque text, only to be
	// compared.
	Started string `json:"started"`
}

func processOf(pid int) Process { return Process{PID: pid, Started: startTime(pid)} }

// Alive reports whether exactly this process is still running. A zombie is not.
func (p Process) Alive() bool {
	return p.PID > 0 && p.Started != "" && startTime(p.PID) == p.Started
}

// signal sends s if the process is alive. A process that has ended is not an error.
func (p Process) signal(s syscall.Signal) error {
	if !p.Alive() {
		return nil
	}
	if err := syscall.Kill(p.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %v to process %d: %w", s, p.PID, err)
	}
	return nil
}

// waitGone waits until the process has ended, and reports whether it has.
func (p Process) waitGone(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); p.Alive(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// startTime returns when process pid started, or an empty string if it is not running.
func startTime(pid int) string {
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
		return startTimeFromStat(string(stat))
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		return ""
	}

	// There is no /proc, as on macOS.
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	state, started, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || strings.HasPrefix(state, "Z") {
		return ""
	}

	return strings.TrimSpace(started)
}

// startTimeFromStat returns field 22 of proc(5)'s stat line. The command in field 2 can contain
// spaces and parentheses, so it counts fields after the last parenthesis.
func startTimeFromStat(stat string) string {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}
