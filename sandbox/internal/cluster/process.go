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

// Process names a process beyond the reuse of process ids.
type Process struct {
	PID int `json:"pid"`
	// Started is the start time as the operating system states it: an opaque
	// text to compare.
	Started string `json:"started"`
}

func processOf(pid int) Process { return Process{PID: pid, Started: startTime(pid)} }

// Alive tells whether exactly this process still runs. A zombie does not.
func (p Process) Alive() bool {
	return p.PID > 0 && p.Started != "" && startTime(p.PID) == p.Started
}

// signal sends s if the process is alive. A process that is gone is no error.
func (p Process) signal(s syscall.Signal) error {
	if !p.Alive() {
		return nil
	}
	if err := syscall.Kill(p.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %v to process %d: %w", s, p.PID, err)
	}
	return nil
}

// waitGone waits until the process has ended, and tells whether it has.
func (p Process) waitGone(limit time.Duration) bool {
	for deadline := time.Now().Add(limit); p.Alive(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// startTime returns when process pid started, empty when there is no such
// running process.
func startTime(pid int) string {
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
		return startTimeFromStat(string(stat))
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		return ""
	}
	// No /proc, as on macOS.
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	state, started, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || strings.HasPrefix(state, "Z") {
		return ""
	}
	return strings.TrimSpace(started)
}

// startTimeFromStat reads field 22 of proc(5)'s stat line. The command in field 2
// may hold spaces and parentheses, so fields are counted after the last one.
func startTimeFromStat(stat string) string {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}
