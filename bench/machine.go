package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// thisMachine describes where the command runs; unknown fields are empty.
func thisMachine() machine {
	m := machine{CPUs: runtime.NumCPU(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	raw, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(raw), " ")
	m.Load, _ = strconv.ParseFloat(first, 64)
	raw, _ = os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(raw)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
			m.Model = strings.TrimSpace(value)
			break
		}
	}
	return m
}
