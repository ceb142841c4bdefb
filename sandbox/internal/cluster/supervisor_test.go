package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep.run/lockstep/sandbox/internal/program"
)

// supervisorEnv makes the test binary a supervisor of the data folder that it names.
const supervisorEnv = "LOCKSTEP_TEST_SUPERVISOR"

// TestMain makes the test binary replace etcd and the registry, because a supervisor starts its own
// binary under their names.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case program.Etcd:
		fakeEtcd()
	case program.Registry:
		fakeRegistry()
	}

	if dir := os.Getenv(supervisorEnv); dir != "" {
		logger := log.New(os.Stderr, "", 0)
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		ready := func(i Info) { _ = json.NewEncoder(os.Stdout).Encode(i) }
		if err := Run(ctx, testOptions(dir), logger, ready); err != nil {
			logger.Fatal(err)
		}
		return
	}

	os.Exit(m.Run())
}

func fakeEtcd() {
	flags := flag.NewFlagSet(program.Etcd, flag.ExitOnError)
	values := map[string]*string{}
	for _, arg := range os.Args[1:] {
		flagName, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if flagName == "unsafe-no-fsync" {
			flags.Bool(flagName, false, "")
			continue
		}
		values[flagName] = flags.String(flagName, "", "")
	}

	_ = flags.Parse(os.Args[1:])
	address, _ := url.Parse(*values["listen-client-urls"])
	serveFake(address.Host, fmt.Sprintf(`{"members":[{"name":%q}]}`, *values["name"]))
}

func fakeRegistry() {
	serveFake(strings.TrimPrefix(os.Args[1], "--listen="), "{}")
}

// serveFake ends with the supervisor, like real components.
func serveFake(address, answer string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(3, "supervisor"))
		os.Exit(1)
	}()
	fmt.Fprintln(os.Stderr, http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, answer)
	})))
	os.Exit(1)
}

func testOptions(dir string) Options {
	return Options{Name: "test", Dir: dir, Components: []string{program.Etcd, program.Registry}}
}

// runTest starts a supervisor in this process; stop ends it and returns its error.
func runTest(t *testing.T, s *supervisor) (info Info, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan Info, 1), make(chan error, 1)
	go func() { done <- s.run(ctx, func(i Info) { ready <- i }) }()
	t.Cleanup(cancel)
	select {
	case info = <-ready:
	case err := <-done:
		t.Fatalf("the supervisor ended: %v", err)
	}

	return info, func() error {
		cancel()
		return <-done
	}
}

func newTestSupervisor(t *testing.T, dir string) *supervisor {
	return &supervisor{
		options: testOptions(dir), log: log.New(t.Output(), "", 0), choosePorts: freePorts, token: "token",
	}
}

func componentOf(t *testing.T, info Info, name string) ComponentStatus {
	t.Helper()
	for _, c := range info.Components {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no component %s in %+v", name, info)
	return ComponentStatus{}
}

func status(t *testing.T, dir string) Info {
	t.Helper()
	info, found, err := Status(t.Context(), dir)
	if err != nil || !found {
		t.Fatalf("status: found %v, %v", found, err)
	}
	return info
}

func TestSupervisorStopsEverything(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	info, stop := runTest(t, newTestSupervisor(t, dir))
	if err := stop(); err != nil {
		t.Error(err)
	}
	for _, c := range info.Components {
		if c.Alive() {
			t.Errorf("%s still runs", c.Name)
		}
	}
}

// takenPort makes s choose a taken port in its first attempts. The port stays taken until the test
// ends; made counts all attempts.
func takenPort(t *testing.T, s *supervisor, of func(*ports) *int, attempts int) (taken net.Listener, made *int) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { taken.Close() })
	made = new(int)
	s.choosePorts = func() (ports, error) {
		p, err := freePorts()
		if *made++; *made <= attempts {
			*of(&p) = taken.Addr().(*net.TCPAddr).Port
		}
		return p, err
	}

	return taken, made
}

func etcdPort(p *ports) *int     { return &p.EtcdClient }
func registryPort(p *ports) *int { return &p.Registry }

func TestSupervisorTriesOtherPorts(t *testing.T) {
	t.Parallel()
	s := newTestSupervisor(t, filepath.Join(t.TempDir(), "data"))
	_, made := takenPort(t, s, etcdPort, 1)
	if _, stop := runTest(t, s); stop() != nil || *made != 2 {
		t.Errorf("%d attempts, want 2", *made)
	}
}

// The port is free again when the supervisor checks, so only the component knows.
func TestSupervisorTriesOtherPortsAfterAMoment(t *testing.T) {
	t.Parallel()
	s := newTestSupervisor(t, filepath.Join(t.TempDir(), "data"))
	taken, made := takenPort(t, s, registryPort, 1)
	s.log = log.New(writerFunc(func(line []byte) (int, error) {
		if bytes.Contains(line, []byte("registry exited")) {
			taken.Close()
		}
		return t.Output().Write(line)
	}), "", 0)
	if _, stop := runTest(t, s); stop() != nil || *made != 2 {
		t.Errorf("%d attempts, want 2", *made)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// The error has the last output of a component, even if its log no longer exists.
func TestExitErrorHasTheEndOfTheLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := newTestSupervisor(t, dir)
	_, made := takenPort(t, s, registryPort, startAttempts)
	err := s.startWithRetry(t.Context())
	if removed := os.RemoveAll(dir); removed != nil {
		t.Fatal(removed)
	}
	if err == nil || !strings.Contains(err.Error(), "address already in use") || *made != startAttempts {
		t.Errorf("the error after %d attempts is %v", *made, err)
	}
}

func TestSupervisorRestartsAComponent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	info, stop := runTest(t, newTestSupervisor(t, dir))
	defer func() { _ = stop() }()
	before := componentOf(t, info, program.Registry)
	if err := before.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the registry runs again", func() bool {
		c := componentOf(t, status(t, dir), program.Registry)
		return c.State == StateRunning && c.PID != before.PID && c.Restarts == 1
	})
}

func TestStoppedComponentStaysStopped(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	info, stop := runTest(t, newTestSupervisor(t, dir))
	defer func() { _ = stop() }()
	for _, action := range []string{ActionStop, ActionStart, ActionKill} {
		if err := Act(t.Context(), dir, program.Registry, action); err != nil {
			t.Fatal(err)
		}
		want := StateStopped
		if action == ActionStart {
			want = StateRunning
		}
		if c := componentOf(t, status(t, dir), program.Registry); c.State != want || c.Restarts != 0 {
			t.Errorf("after %s: %+v, want it %s", action, c, want)
		}
	}

	if componentOf(t, info, program.Registry).Alive() {
		t.Error("the first process still runs")
	}
	if err := Act(t.Context(), dir, "coffee", ActionStop); err == nil || !strings.Contains(err.Error(), `no component "coffee"`) {
		t.Errorf("got %v for an unknown component", err)
	}
}

func TestOneSupervisorPerFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	_, stop := runTest(t, newTestSupervisor(t, dir))
	defer func() { _ = stop() }()
	var running *RunningError
	if err := newTestSupervisor(t, dir).run(t.Context(), nil); !errors.As(err, &running) {
		t.Errorf("got %v, want a RunningError", err)
	}
}

func TestKilledSupervisorIsReplaced(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first, info := startSupervisorProcess(t, dir)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	eventually(t, "the components have ended with their supervisor", func() bool {
		return !componentOf(t, info, program.Etcd).Alive() && !componentOf(t, info, program.Registry).Alive()
	})
	if got := status(t, dir).Phase; got != PhaseStopped {
		t.Errorf("phase %s, want %s", got, PhaseStopped)
	}

	second, _ := startSupervisorProcess(t, dir)
	if got := status(t, dir).Phase; got != PhaseReady {
		t.Errorf("phase %s, want %s", got, PhaseReady)
	}
	go func() { _ = second.Wait() }()
	if found, err := Down(dir, false); !found || err != nil {
		t.Errorf("down: found %v, %v", found, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("data folder after down: %v, want it gone", err)
	}
	if found, err := Down(dir, false); found || err != nil {
		t.Errorf("second down: found %v, %v", found, err)
	}
}

// startSupervisorProcess starts a supervisor in its own process and waits until it is ready.
func startSupervisorProcess(t *testing.T, dir string) (*exec.Cmd, Info) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), supervisorEnv+"="+dir)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var info Info
	if err := json.NewDecoder(output).Decode(&info); err != nil {
		t.Fatal(err)
	}

	return cmd, info
}

func TestForeignFolderIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	precious := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newTestSupervisor(t, dir).run(t.Context(), nil); err == nil {
		t.Error("a folder with other files was accepted")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// eventually fails the test if condition does not hold within 3 minutes, which is enough for a busy
// machine.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
