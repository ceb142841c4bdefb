package cluster

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"lockstep.run/lockstep/sandbox/internal/program"
)

const (
	// startLimit bounds one attempt to start everything.
	startLimit = 90 * time.Second
	// startAttempts is how often other ports are tried.
	startAttempts = 3
	// restartDelay is the pause before a component that exited starts again.
	restartDelay = 500 * time.Millisecond
)

// stopLimits are how long components can take to stop before they are killed.
var stopLimits = map[string]time.Duration{
	program.Etcd:              3 * time.Second,
	program.APIServer:         5 * time.Second,
	program.ControllerManager: 2 * time.Second,
	program.Scheduler:         2 * time.Second,
	program.Kwok:              2 * time.Second,
	program.Registry:          2 * time.Second,
}

// supervisor runs the components of one sandbox.
type supervisor struct {
	options     Options
	log         *log.Logger
	choosePorts func() (ports, error)

	launch     launch
	components []*component // in the order of their start
	pipe       *os.File     // writing end: open for as long as this process lives
	control    net.Listener
	token      string

	mu    sync.Mutex
	phase string
	// failed receives the first component that exits during the start.
	failed chan error
}

// Run is the supervisor. It starts a sandbox, calls ready once it can be used, and stops it when
// ctx ends, holding the lock of the data folder meanwhile. It returns no error only if ctx ended
// after the sandbox was ready.
func Run(ctx context.Context, o Options, logger *log.Logger, ready func(Info)) error {
	s := &supervisor{options: o, log: logger, choosePorts: freePorts, token: randomToken()}
	return s.run(ctx, ready)
}

func (s *supervisor) run(ctx context.Context, ready func(Info)) error {
	o := s.options
	lock, held, err := lockDir(layout{o.Dir})
	if err != nil {
		return err
	}
	if !held {
		return &RunningError{Name: o.Name, Dir: o.Dir}
	}

	defer lock.Close()
	clearEphemeral(filepath.Dir(o.Dir))
	if o.Ephemeral {
		defer func() {
			_ = os.RemoveAll(o.Dir)
			_ = os.Remove(lock.Name())
		}()
	}

	if err := s.startWithRetry(ctx); err != nil {
		return err
	}

	ready(s.info())
	<-ctx.Done()
	s.log.Printf("stopping: %v", context.Cause(ctx))
	s.stop()
	return nil
}

// RunningError means that a sandbox already has a supervisor.
type RunningError struct{ Name, Dir string }

// Error implements error.
func (e *RunningError) Error() string {
	return fmt.Sprintf("sandbox %s runs already in %s: stop it with 'sandbox down --name %s' or choose another --name", e.Name, e.Dir, e.Name)
}

// startWithRetry starts the sandbox. It tries other ports if one of the chosen ports was lost to
// another process.
func (s *supervisor) startWithRetry(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		if err := clearStale(s.options.Dir); err != nil {
			return err
		}
		begin := time.Now()
		err := s.start(ctx)
		if err == nil {
			s.log.Printf("ready after %s", time.Since(begin).Round(time.Millisecond))
			return nil
		}
		s.stop()
		if attempt == startAttempts || ctx.Err() != nil || !lostPort(err) && !s.launch.ports.portTaken() {
			return err
		}
		s.log.Printf("attempt %d lost a port: %v", attempt, err)
	}
}

// lostPort reports whether a component ended because its port was taken, even if the port is free
// again by now.
func lostPort(err error) bool {
	var exit *exitError
	return errors.As(err, &exit) && strings.Contains(exit.end, syscall.EADDRINUSE.Error())
}

// start makes one attempt. The caller has to call stop if it fails.
func (s *supervisor) start(parent context.Context) error {
	var err error
	if s.launch, err = prepare(s.options, s.choosePorts); err != nil {
		return err
	}

	s.failed = make(chan error, 1)
	s.setPhase(PhaseStarting)
	if err := s.makeComponents(); err != nil {
		return err
	}
	if err := s.serveControl(); err != nil {
		return err
	}

	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	ctx, cancelLimit := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not within %s", startLimit))
	defer cancelLimit()
	go func() {
		select {
		case err := <-s.failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()

	if err := s.bringUp(ctx); err != nil {
		return s.explain(err)
	}

	s.setPhase(PhaseReady)
	return s.writeState()
}

func (s *supervisor) makeComponents() error {
	reading, writing, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making the supervisor's pipe: %w", err)
	}

	s.pipe = writing
	s.components = nil
	for _, name := range AllComponents() {
		if s.options.has(name) {
			s.components = append(s.components, &component{
				name: name, args: s.launch.args(name), log: s.launch.log(name), pipe: reading, exited: s.onExit,
			})
		}
	}

	return nil
}

// bringUp starts the components in order and waits until each of them works.
func (s *supervisor) bringUp(ctx context.Context) error {
	if err := s.startAll(program.Etcd, program.Registry); err != nil {
		return err
	}
	if err := s.await(ctx, program.Etcd); err != nil {
		return err
	}
	if err := s.startAll(program.APIServer); err != nil {
		return err
	}
	if err := s.await(ctx, program.APIServer); err != nil {
		return err
	}
	if err := s.startAll(program.ControllerManager, program.Scheduler, program.Kwok); err != nil {
		return err
	}

	for _, name := range []string{program.Registry, program.ControllerManager, program.Kwok} {
		if err := s.await(ctx, name); err != nil {
			return err
		}
	}

	return nil
}

func (s *supervisor) startAll(names ...string) error {
	for _, c := range s.components {
		if slices.Contains(names, c.name) {
			if err := c.start(); err != nil {
				return err
			}
		}
	}
	return s.writeState()
}

// await waits until a component works. It returns at once if the component is not part of the
// sandbox.
func (s *supervisor) await(ctx context.Context, name string) error {
	if !s.options.has(name) {
		return nil
	}

	switch name {
	case program.Etcd:
		return waitFor(ctx, "etcd", s.launch.checkEtcd)
	case program.Registry:
		return waitFor(ctx, "the registry", s.launch.checkRegistry)
	case program.Scheduler:
		return nil
	}

	client, err := s.launch.client()
	if err != nil {
		return err
	}

	switch name {
	case program.APIServer:
		return waitFor(ctx, "the API server", checkAPIServer(client))
	case program.ControllerManager:
		return waitFor(ctx, "the controller manager", checkServiceAccounts(client))
	default:
		if err := createNodes(ctx, client, s.options.Nodes); err != nil {
			return err
		}
		count := s.options.Nodes
		if !s.options.has(program.ControllerManager) {
			count = 0 // no controller removes the taints of new nodes
		}
		return waitFor(ctx, "kwok", checkNodes(client, count))
	}
}

// stop stops clients, then the API server, then etcd. An API server without etcd would not stop by
// itself.
func (s *supervisor) stop() {
	s.setPhase(PhaseStopping)
	_ = s.writeState()
	s.stopAll(program.ControllerManager, program.Scheduler, program.Kwok, program.Registry)
	s.stopAll(program.APIServer)
	s.stopAll(program.Etcd)
	_ = s.writeState()
	if s.control != nil {
		s.control.Close()
	}
	if s.pipe != nil {
		s.pipe.Close()
	}

	for _, c := range s.components {
		c.pipe.Close() // shared: the second close is harmless
	}
}

func (s *supervisor) stopAll(names ...string) {
	var group sync.WaitGroup
	for _, c := range s.components {
		if slices.Contains(names, c.name) {
			group.Go(func() { c.stop(stopLimits[c.name]) })
		}
	}
	group.Wait()
}

// onExit handles a component that ended although it should be running.
func (s *supervisor) onExit(c *component, cause error) {
	s.log.Printf("%s exited: %v", c.name, cause)
	switch s.currentPhase() {
	case PhaseStarting:
		select {
		case s.failed <- &exitError{component: c.name, log: c.log, end: tail(c.log, 10), cause: cause}:
		default:
		}
	case PhaseReady:
		time.Sleep(restartDelay)
		if err := c.restart(); err != nil {
			s.log.Printf("starting %s again: %v", c.name, err)
		}
		if err := s.writeState(); err != nil {
			s.log.Print(err)
		}
	}
}

// exitError means that a component ended during the start. end is the end of its log, which is
// removed along with the sandbox's folder.
type exitError struct {
	component, log, end string
	cause               error
}

func (e *exitError) Error() string {
	return fmt.Sprintf("%s exited: %v; the end of its log %s:\n%s", e.component, e.cause, e.log, e.end)
}

// explain prefers the exit of a component over the time-outs that follow from it.
func (s *supervisor) explain(err error) error {
	var exit *exitError
	if errors.As(err, &exit) {
		return exit
	}
	return fmt.Errorf("%w; logs are in %s", err, s.launch.logs())
}

func (s *supervisor) setPhase(phase string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = phase
}

func (s *supervisor) currentPhase() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase
}

// info describes the sandbox as it is now.
func (s *supervisor) info() Info {
	info := Info{
		Name: s.options.Name, Phase: s.currentPhase(), DataDir: s.options.Dir,
		Supervisor: processOf(os.Getpid()),
	}

	for _, c := range s.components {
		info.Components = append(info.Components, c.status())
	}

	if s.options.has(program.Etcd) {
		info.Etcd = s.launch.etcdURL()
	}
	if s.options.has(program.Registry) {
		info.Registry = s.launch.registryHost()
	}
	if s.options.has(program.APIServer) {
		info.Server, info.Kubeconfig = s.launch.serverURL(), s.launch.kubeconfig("admin")
		info.CAFile, info.CAKeyFile, info.AuditLog = s.launch.caFile(), s.launch.caKeyFile(), s.launch.auditLog()
	}
	if s.options.has(program.Kwok) {
		info.Nodes = s.options.Nodes
	}

	return info
}

func (s *supervisor) writeState() error {
	s.mu.Lock()
	control, token := "", s.token
	if s.control != nil {
		control = "http://" + s.control.Addr().String()
	}
	s.mu.Unlock()
	return state{Info: s.info(), Ephemeral: s.options.Ephemeral, Control: control, ControlToken: token}.write()
}
