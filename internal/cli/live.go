package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
)

// frameInterval is the time between two pictures of what moves.
const frameInterval = 100 * time.Millisecond

// live redraws a picture in place.
type live struct {
	program *tea.Program
	ended   chan struct{}
	restore func()
}

func newLive(out io.Writer, title string) *live {
	width, height := terminal.Size(out)
	model := liveModel{
		begin: time.Now(),
		options: progress.FrameOptions{
			Title: title, Width: width, Height: height, Styles: terminal.StylesFor(out),
		},
	}
	l := &live{
		// Keys have no meaning, so the terminal stays in its usual mode, but for
		// the echo: an interrupt is a signal, and what is typed is for the shell.
		program: tea.NewProgram(model, tea.WithOutput(out), tea.WithInput(nil),
			tea.WithoutSignalHandler(), tea.WithEnvironment(quiet(os.Environ()))),
		ended:   make(chan struct{}),
		restore: terminal.Quiet(out),
	}
	go func() {
		defer close(l.ended)
		if last, err := l.program.Run(); err == nil {
			// Back over the empty lines.
			if empty := last.(liveModel).padding(); empty > 0 {
				fmt.Fprintf(out, "\x1b[%dA", empty)
			}
		}
	}()
	return l
}

// quiet is an environment in which the library asks the terminal nothing: with
// no input its answers would be left for the shell to read. Colours are chosen
// by NO_COLOR and COLORTERM, which stay.
func quiet(environ []string) []string {
	var out []string
	for _, entry := range environ {
		switch name, _, _ := strings.Cut(entry, "="); name {
		case "TERM", "TERM_PROGRAM", "WT_SESSION":
		default:
			out = append(out, entry)
		}
	}
	return append(out, "TERM=xterm-256color", "TERM_PROGRAM=Apple_Terminal")
}

func (l *live) show(s progress.State, _ time.Duration) { l.program.Send(stateMsg{state: s}) }

func (l *live) close(s progress.State, _ time.Duration) {
	l.program.Send(stateMsg{state: s, last: true})
	<-l.ended
	l.restore()
}

type (
	stateMsg struct {
		state progress.State
		last  bool
	}
	tickMsg struct{}
)

// liveModel is what the picture is made of. A picture that becomes smaller is
// filled with empty lines: the library leaves remains of the former one where
// its height shrinks.
type liveModel struct {
	state   progress.State
	options progress.FrameOptions
	begin   time.Time
	tallest int
}

func (m liveModel) frame() string { return progress.Frame(m.state, m.options) }

// padding is the number of empty lines below the picture.
func (m liveModel) padding() int { return max(0, m.tallest-height(m.frame())) }

func height(frame string) int { return strings.Count(frame, "\n") + 1 }

func tick() tea.Cmd { return tea.Tick(frameInterval, func(time.Time) tea.Msg { return tickMsg{} }) }

// Init implements tea.Model.
func (m liveModel) Init() tea.Cmd { return tick() }

// Update implements tea.Model.
func (m liveModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var next tea.Cmd
	m.options.Elapsed = time.Since(m.begin)
	switch msg := msg.(type) {
	case tickMsg:
		m.options.Tick++
		next = tick()
	case stateMsg:
		m.state, m.options.Done = msg.state, msg.last
		if msg.last {
			next = tea.Quit
		}
	case tea.WindowSizeMsg:
		m.options.Width, m.options.Height = msg.Width, msg.Height
		m.tallest = min(m.tallest, max(msg.Height-1, 1))
	}
	m.tallest = max(m.tallest, height(m.frame()))
	return m, next
}

// View implements tea.Model.
func (m liveModel) View() tea.View {
	content := m.frame() + strings.Repeat("\n", m.padding())
	if m.options.Done {
		content += "\n" // the library clears the line that it ends on
	}
	view := tea.NewView(content)
	view.DisableBracketedPasteMode = true
	return view
}
