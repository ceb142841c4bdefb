package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// scenarios of the command bench that are the steps.
var scenarios = map[string]string{"install": steps[0], "upgrade": steps[1], "rest": steps[2], "drift": steps[3], "delete": steps[4]}

// lockstep does the steps by the command bench, in phases of a tenth of the objects, each gated.
func lockstep(ctx context.Context, objects int) (map[string]figure, error) {
	dir, err := os.MkdirTemp("", "compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	result := filepath.Join(dir, "result.json")
	cmd := exec.CommandContext(ctx, "go", "run", "./bench", "--workload", "50", "--objects", fmt.Sprint(objects), "--phases", "10",
		"--scenarios", "install,rest,upgrade,drift,delete", "--check=false", "--json", result)
	cmd.Stderr = os.Stderr
	if out, err := cmd.Output(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	text, err := os.ReadFile(result)
	if err != nil {
		return nil, err
	}
	var document struct {
		Workloads []struct {
			Rows []struct {
				Scenario string  `json:"scenario"`
				Requests int     `json:"requests"`
				Seconds  float64 `json:"seconds"`
			} `json:"rows"`
		} `json:"workloads"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	out := map[string]figure{}
	for _, w := range document.Workloads {
		for _, r := range w.Rows {
			step, ok := scenarios[r.Scenario]
			if !ok {
				continue
			}
			f := figure{requests: r.Requests, seconds: r.Seconds}
			if r.Scenario == "rest" { // its seconds are its length
				f.note = fmt.Sprintf("in %.0f s", r.Seconds)
			}
			out[step] = f
		}
	}
	return out, nil
}
