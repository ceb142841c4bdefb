package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"lockstep.run/lockstep/sandbox/internal/program"
)

// component is one supervised process that can be started and stopped repeatedly.
type component struct {
	name string
	args []string
	log  string
	pipe *os.File // reading end of the supervisor's pipe
	// exited is called, without locks held, if a process ends that should be running.
	exited func(c *component, err error)

	mu       sync.Mutex
	process  Process
	done     chan struct{} // closed when the current process has ended; nil before the first one
	wanted   bool
	restarts int
}

// start starts the process unless it is running.
func (c *component) start() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = true
	if c.running() {
		return nil
	}
	return c.spawn()
}

// restart starts the process again after it exited by itself, unless it was stopped or started in
// the meantime.
func (c *component) restart() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.wanted || c.running() {
		return nil
	}
	c.restarts++
	return c.spawn()
}

func (c *component) spawn() error {
	output, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", c.name, err)
	}

	defer output.Close()
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program's file: %w", err)
	}

	cmd := &exec.Cmd{
		Path:       binary,
		Args:       append([]string{c.name}, c.args...),
		Env:        append(componentEnv(), program.ParentFDEnv+"=3"),
		ExtraFiles: []*os.File{c.pipe},
		Stdout:     output,
		Stderr:     output,
		// It has its own group, because an interrupt from the terminal should only reach the
		// supervisor, which stops components in order.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}

	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", c.name, err)
	}

	c.process = processOf(cmd.Process.Pid)
	done := make(chan struct{})
	c.done = done
	go func() {
		err := cmd.Wait()
		close(done)
		c.mu.Lock()
		unexpected := c.wanted && c.done == done
		c.mu.Unlock()
		if unexpected {
			c.exited(c, err)
		}
	}()

	return nil
}

// stop ends the process with SIGTERM, and with SIGKILL if it is still running after limit. A limit
// of 0 means SIGKILL at once.
func (c *component) stop(limit time.Duration) {
	c.mu.Lock()
	c.wanted = false
	done, process := c.done, c.process
	c.mu.Unlock()
	if done == nil {
		return
	}

	if limit > 0 {
		_ = process.signal(syscall.SIGTERM)
		select {
		case <-done:
			return
		case <-time.After(limit):
		}
	}

	_ = process.signal(syscall.SIGKILL)
	<-done
}

// running reports whether the process is running. c.mu is held.
func (c *component) running() bool {
	if c.done == nil {
		return false
	}
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

func (c *component) status() ComponentStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := ComponentStatus{Name: c.name, State: StateStopped, Restarts: c.restarts, Log: c.log}
	switch {
	case c.running():
		s.State, s.Process = StateRunning, c.process
	case c.wanted:
		s.State = StateExited
	}
	return s
}

// componentEnv is this process's environment without the variables that would redirect a
// component's requests.
func componentEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "KUBECONFIG" || strings.HasPrefix(name, "ETCD_") || strings.HasPrefix(name, "KWOK_") ||
			strings.HasPrefix(name, "KUBERNETES_SERVICE_")
	})
}
