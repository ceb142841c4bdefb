package measure

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Memory of a process in bytes: RssAnon is its own, RSS has the pages of its
// binary in it, VmHWM is the most that RSS was since the process started.
type Memory struct {
	RssAnon int64 `json:"rssAnonBytes"`
	RSS     int64 `json:"rssBytes"`
	VmHWM   int64 `json:"vmHWMBytes"`
}

// parseMemory reads a /proc/PID/status.
func parseMemory(status string) (Memory, error) {
	var m Memory
	fields := map[string]*int64{"RssAnon:": &m.RssAnon, "VmRSS:": &m.RSS, "VmHWM:": &m.VmHWM}
	for line := range strings.Lines(status) {
		words := strings.Fields(line)
		if len(words) != 3 || fields[words[0]] == nil {
			continue
		}
		kilobytes, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			return Memory{}, fmt.Errorf("%s %w", words[0], err)
		}
		*fields[words[0]] = kilobytes * 1024
		delete(fields, words[0])
	}
	if len(fields) > 0 {
		return Memory{}, fmt.Errorf("%d of RssAnon, VmRSS and VmHWM are missing", len(fields))
	}
	return m, nil
}

// tick is the unit of processor times in /proc, on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// parseCPU reads the processor time, of user and system, from a /proc/PID/stat.
func parseCPU(stat string) (time.Duration, error) {
	// The second field is the name in parentheses, which may hold anything.
	words := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(words) < 13 {
		return 0, fmt.Errorf("%d fields after the name, want 13 at least", len(words))
	}
	var ticks int64
	for _, word := range words[11:13] {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

func readMemory(pid int) (Memory, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	raw, err := os.ReadFile(path)
	if err != nil {
		return Memory{}, err
	}
	m, err := parseMemory(string(raw))
	if err != nil {
		return Memory{}, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func readCPU(pid int) (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	cpu, err := parseCPU(string(raw))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return cpu, nil
}
