package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// upLimit bounds the wait of Up, over all attempts of the supervisor.
	upLimit = 3 * time.Minute
	// downLimit bounds an orderly stop. It exceeds the sum of all stop limits.
	downLimit = 15 * time.Second
)

// Up makes the sandbox run and returns when it is ready. It leaves a running one as it is, and
// replaces the remains of a killed one.
func Up(ctx context.Context, o Options) (Info, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, upLimit, fmt.Errorf("not within %s", upLimit))
	defer cancel()
	for {
		s, err := readState(o.Dir)
		if err != nil && !errors.Is(err, errNoSandbox) {
			return Info{}, err
		}
		switch {
		case err == nil && s.Phase == PhaseReady:
			return s.Info, nil
		case err == nil && s.Phase != PhaseStopped:
			// Another process is starting or stopping it at this moment.
		default:
			info, err := startSupervisor(ctx, o)
			var running *runningElsewhere
			if !errors.As(err, &running) {
				return info, err
			}
		}
		select {
		case <-ctx.Done():
			return Info{}, fmt.Errorf("waiting for sandbox %s: %w", o.Name, context.Cause(ctx))
		case <-time.After(pollInterval):
		}
	}
}

// runningElsewhere means that another process has just started the sandbox.
type runningElsewhere struct{}

func (*runningElsewhere) Error() string { return "another process starts the sandbox" }

// Announcement is the single line of JSON that a supervisor writes to standard output at the end of
// the start.
type Announcement struct {
	// Error is empty if the sandbox is ready.
	Error string `json:"error,omitempty"`
	// Running is set along with Error if the sandbox already has a supervisor.
	Running bool `json:"running,omitempty"`
	// Sandbox is set if Error is not.
	Sandbox *Info `json:"sandbox,omitempty"`
}

// startSupervisor starts a supervisor that outlives this process, in its own session, and waits for
// its announcement.
func startSupervisor(ctx context.Context, o Options) (Info, error) {
	binary, err := os.Executable()
	if err != nil {
		return Info{}, fmt.Errorf("finding this program's file: %w", err)
	}

	cmd := exec.Command(binary, "run", "--announce", "--keep",
		"--name", o.Name, "--data", o.Dir, fmt.Sprintf("--nodes=%d", o.Nodes), fmt.Sprintf("--pod-ready-after=%s", o.PodReadyAfter),
		"--components", strings.Join(o.Components, ","), "--audit-policy", o.AuditPolicy)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
	output, err := cmd.StdoutPipe()
	if err != nil {
		return Info{}, fmt.Errorf("making a pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return Info{}, fmt.Errorf("starting the supervisor: %w", err)
	}

	// An interrupt of Up ends the start as well.
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	line, _ := io.ReadAll(&lineReader{r: output})
	var answer Announcement
	if err := json.Unmarshal(line, &answer); err != nil {
		return Info{}, errors.Join(errors.New("the supervisor ended without a word"), cmd.Wait())
	}

	switch {
	case answer.Running:
		return Info{}, &runningElsewhere{}
	case answer.Error != "":
		return Info{}, errors.New(answer.Error)
	}

	return *answer.Sandbox, cmd.Process.Release()
}

// lineReader ends after the first line, even if the writer keeps the pipe open.
type lineReader struct {
	r     io.Reader
	ended bool
}

func (l *lineReader) Read(p []byte) (int, error) {
	if l.ended {
		return 0, io.EOF
	}
	n, err := l.r.Read(p)
	l.ended = n > 0 && p[n-1] == '\n'
	return n, err
}

// Down stops the sandbox in dir in any state, and removes its data unless keep is set. found is
// false if there is no sandbox.
func Down(dir string, keep bool) (found bool, err error) {
	s, err := readState(dir)
	if errors.Is(err, errNoSandbox) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := s.Supervisor.signal(syscall.SIGTERM); err != nil {
		return true, err
	}

	if !s.Supervisor.waitGone(downLimit) {
		_ = s.Supervisor.signal(syscall.SIGKILL)
		if !s.Supervisor.waitGone(killLimit) {
			return true, fmt.Errorf("the supervisor of sandbox %s (process %d) does not end", s.Name, s.Supervisor.PID)
		}
	}

	return true, clearAfterStop(dir, s.Ephemeral, keep)
}

// clearAfterStop stops remaining processes of a supervisor that had to be killed and removes the
// data.
func clearAfterStop(dir string, ephemeral, keep bool) error {
	if ephemeral {
		keep = false
	}

	s, err := readState(dir)
	if errors.Is(err, errNoSandbox) {
		return nil
	}
	if err != nil {
		return err
	}

	for _, c := range s.Components {
		if err := c.Process.signal(syscall.SIGKILL); err != nil {
			return err
		}
		if !c.Process.waitGone(killLimit) {
			return fmt.Errorf("the %s of sandbox %s (process %d) does not end", c.Name, s.Name, c.PID)
		}
	}

	if keep {
		return nil
	}

	lock, held, err := lockDir(layout{dir})
	if err != nil {
		return err
	}
	if !held {
		return fmt.Errorf("sandbox %s was started again while it was being stopped", s.Name)
	}

	defer lock.Close()
	_ = os.Remove(lock.Name())
	return clearStale(dir)
}

// Status describes the sandbox in dir; found is false if there is no sandbox.
func Status(ctx context.Context, dir string) (info Info, found bool, err error) {
	s, err := readState(dir)
	if errors.Is(err, errNoSandbox) {
		return Info{}, false, nil
	}
	if err != nil {
		return Info{}, false, err
	}

	if s.Phase == PhaseStopped {
		s.Supervisor = Process{}
		for i := range s.Components {
			s.Components[i].State, s.Components[i].Process = StateStopped, Process{}
		}
		return s.Info, true, nil
	}

	body, err := s.call(ctx, http.MethodGet, "/status")
	if err != nil {
		return s.Info, true, nil // it is just starting or stopping, so only the file is available
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return info, true, fmt.Errorf("reading the supervisor's answer: %w", err)
	}

	return info, true, nil
}

// These are component actions of [Act].
const (
	ActionStart = "start" // and wait until it works
	ActionStop  = "stop"  // orderly, and keep it stopped
	ActionKill  = "kill"  // SIGKILL, and keep it stopped
)

// Act starts or stops one component of the running sandbox in dir. The component keeps its data and
// its ports.
func Act(ctx context.Context, dir, component, action string) error {
	s, err := readState(dir)
	if err != nil {
		return err
	}
	if s.Phase == PhaseStopped {
		return fmt.Errorf("sandbox %s does not run: start it with 'sandbox up --name %s'", s.Name, s.Name)
	}
	_, err = s.call(ctx, http.MethodPost, "/components/"+component+"/"+action)
	return err
}

func (s state) call(ctx context.Context, method, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.Control+path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the supervisor: %w", err)
	}

	request.Header.Set("Authorization", "Bearer "+s.ControlToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the supervisor: %w", err)
	}

	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the supervisor's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(string(body)))
	}

	return body, nil
}
