package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"lockstep.run/lockstep/test/ports"
)

// The time limits of the manager.
const (
	// startLimit covers the wait for the Lease of a manager that was killed.
	startLimit = 60 * time.Second
	stopLimit  = 15 * time.Second
	pollEvery  = 100 * time.Millisecond
)

func (t *trial) logFile() string        { return filepath.Join(t.dir, "manager.log") }
func (t *trial) kubeconfigFile() string { return filepath.Join(t.dir, "manager.kubeconfig") }

// startManager replaces the last manager with the one in bin/.
func (t *trial) startManager(ctx context.Context) error {
	say("Starting the manager as a process of this machine, under its service account")
	lock, err := t.replace(ctx)
	if err != nil {
		return err
	}

	defer lock.Close()
	if err := t.writeKubeconfig(ctx); err != nil {
		return err
	}

	probe, err := ports.Free()
	if err != nil {
		return err
	}

	log, err := os.Create(t.logFile())
	if err != nil {
		return fmt.Errorf("creating the manager's log: %w", err)
	}

	defer log.Close()
	cmd := exec.Command(t.bin(manager),
		"--kubeconfig", t.kubeconfigFile(), "--namespace", namespace, "--leader-elect",
		"--metrics-bind-address", "0", "--health-probe-bind-address", probe,
		"--cache-dir", filepath.Join(t.dir, "images"), "--insecure-registry", t.sandbox.Registry)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.dir, log, log
	// It outlives this program, in its own session. It inherits the lock, which is held as long as
	// the process lives.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.ExtraFiles = []*os.File{lock}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the manager: %w", err)
	}
	if err := writePID(lock, cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		return err
	}
	if err := t.awaitReady(ctx, cmd, probe); err != nil {
		_ = cmd.Process.Kill()
		return err
	}

	fmt.Printf("    process %d, log %s\n", cmd.Process.Pid, t.logFile())
	return nil
}

// replace takes the lock of the manager. It stops a running manager, which holds the lock, first.
func (t *trial) replace(ctx context.Context) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(t.dir, "manager.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the manager's lock: %w", err)
	}

	deadline := time.Now().Add(stopLimit)
	for signal := syscall.SIGTERM; ; {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			// The file is empty until the next manager runs, so that no other process is stopped.
			if err := lock.Truncate(0); err != nil {
				lock.Close()
				return nil, fmt.Errorf("clearing %s: %w", lock.Name(), err)
			}
			return lock, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			lock.Close()
			return nil, fmt.Errorf("locking %s: %w", lock.Name(), err)
		}
		pid, err := readPID(lock.Name())
		if err == nil && signal != 0 {
			// The holder of the lock wrote this number, so it is that process.
			_ = syscall.Kill(pid, signal)
			signal = 0
		}
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			deadline = deadline.Add(time.Hour)
		}
		if err := sleep(ctx); err != nil {
			lock.Close()
			return nil, err
		}
	}
}

func writePID(lock *os.File, pid int) error {
	if _, err := lock.WriteAt(fmt.Appendln(nil, pid), 0); err != nil {
		return fmt.Errorf("writing the manager's lock: %w", err)
	}
	return nil
}

func readPID(path string) (pid int, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(content), &pid)
	if err == nil && pid <= 1 {
		err = fmt.Errorf("%d is not a process id", pid)
	}
	return pid, err
}

// writeKubeconfig writes the manager's identity: a token of its service account.
func (t *trial) writeKubeconfig(ctx context.Context) error {
	token, err := t.kubectl(ctx, nil, "create", "token", manager, "--namespace", namespace, "--duration=720h")
	if err != nil {
		return err
	}

	authority, err := os.ReadFile(t.sandbox.CAFile)
	if err != nil {
		return fmt.Errorf("reading the sandbox's certificate authority: %w", err)
	}

	named := func(field string, value any) []any { return []any{map[string]any{"name": manager, field: value}} }
	config, err := json.MarshalIndent(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": manager,
		"clusters": named("cluster", map[string]any{
			"server": t.sandbox.Server, "certificate-authority-data": base64.StdEncoding.EncodeToString(authority),
		}),
		"users":    named("user", map[string]any{"token": strings.TrimSpace(string(token))}),
		"contexts": named("context", map[string]any{"cluster": manager, "user": manager}),
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(t.kubeconfigFile(), config, 0o600); err != nil {
		return fmt.Errorf("writing the manager's kubeconfig: %w", err)
	}

	return nil
}

// awaitReady waits until the manager is ready, or returns why it is not.
func (t *trial) awaitReady(ctx context.Context, cmd *exec.Cmd, probe string) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	client := &http.Client{Timeout: time.Second}
	for deadline := time.Now().Add(startLimit); ; {
		response, err := client.Get("http://" + probe + "/readyz")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-ended:
			return fmt.Errorf("the manager ended (%w); the end of its log %s:\n%s", errors.Join(err, errEnded), t.logFile(), tail(t.logFile()))
		default:
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the manager is not ready after %s; the end of its log %s:\n%s", startLimit, t.logFile(), tail(t.logFile()))
		}
		if err := sleep(ctx); err != nil {
			return err
		}
	}
}

var errEnded = errors.New("it was not asked to")

func sleep(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pollEvery):
		return nil
	}
}

// tail returns the end of a log.
func tail(path string) string {
	const lines = 15
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
