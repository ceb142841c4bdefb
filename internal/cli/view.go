package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"charm.land/lipgloss/v2"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

type view interface {
	// show is called for every State.
	show(progress.State, progress.Verdict, time.Duration)
	close(progress.State)
}

func newView(streams genericiooptions.IOStreams, title string, before progress.State) view {
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

func (p *plain) show(s progress.State, v progress.Verdict, elapsed time.Duration) {
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
		lipgloss.EnableLegacyWindowsANSI(f)
	}
	l := &live{
		out: out, size: func() (int, int) { return terminal.Size(out) }, begin: time.Now(), stop: make(chan struct{}),
		options: progress.FrameOptions{Title: title, Styles: terminal.StylesFor(out)},
	}
	go wait.Until(func() { l.draw(func() { l.options.Tick++ }) }, frameInterval, l.stop)
	return l
}

func (l *live) show(s progress.State, _ progress.Verdict, _ time.Duration) {
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
