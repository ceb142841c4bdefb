package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/cluster"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

var (
	// ErrTimeout is the cause of the end of a wait.
	ErrTimeout     = errors.New("timeout")
	errInterrupted = errors.New("interrupted")
)

const (
	// WaitTimeout is the default progress deadline.
	WaitTimeout = 10 * time.Minute
	// RefineInterval is the time between polls of objects that are not watched.
	RefineInterval = 3 * time.Second
)

// Waiter follows a package until it is in the state that a command waits for.
type Waiter struct {
	Streams genericiooptions.IOStreams
	Cluster *cluster.Cluster
	Target  progress.Target
	Uid     types.UID
	// Title of the picture; failing begins an error, as in "is not available".
	Title, Failing string
	Before         progress.State
	Assess         func(progress.State, time.Time) progress.Outcome
	Timeout        time.Duration
	// refine, which may be nil, adds to a Snapshot the state that is not watched.
	Refine func(context.Context, progress.Snapshot) progress.Snapshot
}

// Run follows the package until it is done, the timeout, or an interrupt. Everything but success
// is an error.
func (w *Waiter) Run(ctx context.Context) (progress.State, time.Duration, error) {
	begin := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	observer := w.Cluster.Observe(ctx, w.Target, w.Uid)
	timeout := time.NewTimer(w.Timeout)
	defer timeout.Stop()
	again := time.NewTimer(w.Timeout)
	defer again.Stop()
	shown := newView(w.Streams, w.Title+" "+w.Target.String(), w.Before)

	state := progress.State{Target: w.Target}
	var outcome progress.Outcome
	var err error
	for !outcome.Done && err == nil {
		select {
		case <-observer.Changed():
		case <-again.C:
		case <-timeout.C:
			err = ErrTimeout
			continue
		case <-ctx.Done():
			err = errInterrupted
			continue
		}
		snap, ok, failure := observer.Snapshot(ctx)
		if failure != nil || !ok {
			err = failure
			continue
		}
		now := time.Now()
		if w.Refine != nil && snap.Package != nil {
			snap = w.Refine(ctx, snap)
			again.Reset(RefineInterval)
		}
		if snap.Package == nil {
			state = progress.Ended(state)
		} else {
			state = progress.Of(snap)
		}
		state.Unnoticed = !state.Gone && !state.Deleting && !state.Observed && now.Sub(begin) >= progress.UnnoticedAfter
		outcome = w.Assess(state, now)
		if outcome.Again > 0 && !state.Unnoticed {
			again.Reset(outcome.Again)
		}
		shown.show(state, outcome, now.Sub(begin))
	}
	elapsed := time.Since(begin)
	shown.close(state)
	delay := ""
	if errors.Is(err, ErrTimeout) && progress.Unreported(state) {
		delay = w.Cluster.Delay(context.WithoutCancel(ctx))
	}
	return state, elapsed, w.failure(state, outcome, elapsed, delay, err)
}

// failure is the error of a wait; nil after a success. delay is why the manager may have reported nothing.
func (w *Waiter) failure(s progress.State, v progress.Outcome, elapsed time.Duration, delay string, err error) error {
	failing := w.Target.String() + " " + w.Failing
	see := "\nSee: kubectl package status " + w.Target.Flags()
	switch {
	case errors.Is(err, ErrTimeout):
		culprit := progress.Culprit(s)
		if delay != "" {
			culprit += "; " + delay
		}
		return fmt.Errorf("%s after %s: %s%s", failing, progress.Elapsed(elapsed), culprit, see)
	case errors.Is(err, errInterrupted):
		return fmt.Errorf("%s: interrupted; the cluster goes on with it%s", failing, see)
	case err != nil:
		return err
	case v.Failed && s.Gone:
		return fmt.Errorf("%s: %s", failing, v.Reason)
	case v.Failed:
		return fmt.Errorf("%s: %s%s", failing, v.Reason, see)
	}
	return nil
}

type view interface {
	// show is called for every State.
	show(progress.State, progress.Outcome, time.Duration)
	close(progress.State)
}

func newView(streams genericiooptions.IOStreams, title string, before progress.State) view {
	if out, is := streams.Out.(*events); is {
		return &eventView{out: out, last: before}
	}
	if terminal.IsTerminal(streams.ErrOut) {
		return newLive(streams.ErrOut, title)
	}
	return &plain{out: streams.ErrOut, last: before}
}

// plain writes a line for each transition.
type plain struct {
	out  io.Writer
	last progress.State
}

func (p *plain) show(s progress.State, v progress.Outcome, elapsed time.Duration) {
	if v.Failed || v.Again > 0 {
		s.PullError, s.Invalid, s.Stalled = "", "", "" // the error of the command has them
	}
	for _, line := range progress.Lines(p.last, s) {
		fmt.Fprintf(p.out, "%7s  %s\n", progress.Elapsed(elapsed), line)
	}
	p.last = progress.Remember(p.last, s)
}

func (p *plain) close(progress.State) {}

// frameInterval is the time between two pictures.
const frameInterval = 100 * time.Millisecond

type live struct {
	out   io.Writer
	size  func() (width, height int)
	begin time.Time
	stop  chan struct{}

	mu      sync.Mutex
	state   progress.State
	options progress.FrameOptions
	height  int
}

func newLive(out io.Writer, title string) *live {
	if f, ok := out.(*os.File); ok {
		terminal.EnableSequences(f)
	}
	l := &live{
		out: out, size: func() (int, int) { return terminal.Size(out) }, begin: time.Now(), stop: make(chan struct{}),
		options: progress.FrameOptions{Title: title, Styles: terminal.StylesFor(out)},
	}
	go wait.Until(func() { l.draw(func() { l.options.Tick++ }) }, frameInterval, l.stop)
	return l
}

func (l *live) show(s progress.State, _ progress.Outcome, _ time.Duration) {
	l.draw(func() { l.state = s })
}

func (l *live) close(s progress.State) {
	close(l.stop)
	l.draw(func() { l.state, l.options.Done = s, true })
	fmt.Fprintln(l.out)
}

func (l *live) draw(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.options.Done {
		return
	}
	change()
	l.options.Elapsed = time.Since(l.begin)
	l.options.Width, l.options.Height = l.size()
	frame := progress.Frame(l.state, l.options)
	text := "\r\x1b[J" // erase from the beginning of the line to the end of the screen
	if l.height > 1 {
		text = fmt.Sprintf("\x1b[%dA", l.height-1) + text
	}
	l.height = strings.Count(frame, "\n") + 1
	fmt.Fprint(l.out, text+strings.ReplaceAll(frame, "\n", "\r\n"))
}
