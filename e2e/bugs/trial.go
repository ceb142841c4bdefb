package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// patience is the maximum time of one test.
const patience = 8 * time.Minute

// verdict is the result of a test.
type verdict string

const (
	caught   verdict = "caught"
	unseen   verdict = "NOT CAUGHT"    // the test passed with the bug
	other    verdict = "FAILED OTHERS" // it failed without the expected line
	passed   verdict = "passed"
	failed   verdict = "FAILED"
	withheld verdict = "NO TEST" // no test of that name ran
)

func (v verdict) good() bool { return v == caught || v == passed }

// outcome is the outcome of one test.
type outcome struct {
	Verdict verdict
	Output  string
	Took    time.Duration
}

// trial runs tests in a checkout.
type trial struct {
	// root is the folder of the module.
	root string
	// scratch is for patched files.
	scratch string
}

// catch runs a test with a bug.
func (t *trial) catch(ctx context.Context, c check, overlay string) outcome {
	out := t.test(ctx, c, "-overlay="+overlay)
	switch {
	case out.Verdict == passed:
		out.Verdict = unseen
	case out.Verdict == failed && c.Says.MatchString(out.Output):
		out.Verdict = caught
	case out.Verdict == failed:
		out.Verdict = other
	}
	return out
}

// baseline runs a test without a bug.
func (t *trial) baseline(ctx context.Context, c check) outcome { return t.test(ctx, c, "") }

func (t *trial) test(ctx context.Context, c check, flag string) outcome {
	ctx, cancel := context.WithTimeout(ctx, patience+time.Minute)
	defer cancel()
	args := append([]string{"test", "-v", "-vet=off", "-ldflags=-w", "-count=1", "-timeout=" + patience.String()}, c.Args...)
	var output bytes.Buffer
	begin := time.Now()
	err := t.run(ctx, &output, append(slices.Clone(c.Env), "GOFLAGS="+goflags(flag)), args...)
	out := outcome{Output: output.String(), Took: time.Since(begin)}
	var exit *exec.ExitError
	switch {
	case err == nil && !strings.Contains(out.Output, "--- PASS"):
		out.Verdict = withheld
	case err == nil:
		out.Verdict = passed
	case errors.As(err, &exit):
		out.Verdict = failed
	default:
		out.Verdict, out.Output = failed, out.Output+err.Error()
	}
	return out
}

// goflags returns GOFLAGS with one more flag.
func goflags(flag string) string { return strings.TrimSpace(os.Getenv("GOFLAGS") + " " + flag) }

// run runs the go command. It ends the command and all of its children with ctx.
func (t *trial) run(ctx context.Context, output *bytes.Buffer, env []string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.root
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd.Run()
}
