package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// outcome is what the search of one target came to.
type outcome struct {
	Executions int     `json:"executions"`
	Seconds    float64 `json:"seconds"`
	// New inputs reached code that no earlier one did; Corpus counts all of them.
	New    int  `json:"new"`
	Corpus int  `json:"corpus"`
	Failed bool `json:"failed"`
}

// binaries builds each package's test once.
type binaries struct {
	plain bool
	dir   string
	path  map[string]string
}

func (b *binaries) remove() {
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}

// build returns the path of a package's test. flags are those of `go test`.
func (b *binaries) build(ctx context.Context, pkg string, flags ...string) (string, error) {
	if path := b.path[pkg]; path != "" {
		return path, nil
	}
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "lockstep-fuzz-")
		if err != nil {
			return "", err
		}
		b.dir, b.path = dir, map[string]string{}
	}
	path := filepath.Join(b.dir, strings.ReplaceAll(pkg, "/", "-")+".test")
	args := append([]string{"test", "-c", "-o", path}, flags...)
	if out, err := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	b.path[pkg] = path
	return path, nil
}

// cacheDir is where Go keeps what searches found.
func cacheDir(ctx context.Context, pkg string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return "", err
	}
	return filepath.Join(strings.TrimSpace(string(out)), "fuzz", "lockstep.run/lockstep", pkg), nil
}

// progress is a line that a search prints now and then.
var progress = regexp.MustCompile(`execs: (\d+) \([^)]*\)(?:, new interesting: (\d+) \(total: (\d+)\))?`)

func (b *binaries) search(ctx context.Context, t target, f flags) (outcome, error) {
	var o outcome
	var instrument []string
	if !b.plain {
		instrument = []string{"-fuzz=."}
	}
	path, err := b.build(ctx, t.Package, instrument...)
	if err != nil {
		return o, err
	}
	cache, err := cacheDir(ctx, t.Package)
	if err != nil {
		return o, err
	}
	cmd := exec.CommandContext(ctx, path, "-test.run=^$", "-test.fuzz=^"+t.Name+"$", "-test.fuzztime="+f.time,
		"-test.fuzzcachedir="+cache, "-test.parallel="+strconv.Itoa(f.parallel), "-test.fuzzminimizetime=20x")
	cmd.Dir = t.Package
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	err = cmd.Run()
	o.Seconds = time.Since(start).Seconds()
	o.read(out.Bytes())
	if err == nil || ctx.Err() != nil {
		return o, ctx.Err()
	}
	o.Failed = true
	return o, fmt.Errorf("%w\n%s", err, failure(out.String()))
}

// read takes the last counts out of the output.
func (o *outcome) read(out []byte) {
	all := progress.FindAllSubmatch(out, -1)
	if len(all) == 0 {
		return
	}
	last := all[len(all)-1]
	o.Executions, _ = strconv.Atoi(string(last[1]))
	o.New, _ = strconv.Atoi(string(last[2]))
	o.Corpus, _ = strconv.Atoi(string(last[3]))
}

// failure returns the output without the counts.
func failure(out string) string {
	var kept []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "fuzz: elapsed") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// record appends what a search came to.
func record(path string, t target, o outcome) error {
	line, err := json.Marshal(struct {
		Time    time.Time `json:"time"`
		Package string    `json:"package"`
		Target  string    `json:"target"`
		outcome
	}{time.Now().UTC(), t.Package, t.Name, o})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, string(line)+"\n")
	return errors.Join(err, file.Close())
}
