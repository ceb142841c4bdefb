package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/cli/terminal"
	"lockstep.run/lockstep/internal/kube/summary"
)

// Types of events.
const (
	// EventMessage is a line for people: something was created, changed or done.
	EventMessage = "message"
	// EventTransition is a change of the awaited package.
	EventTransition = "transition"
	// EventEnd is the last event.
	EventEnd = "end"
)

// Event is a line of -o json of a command that changes something. Its JSON fields are stable.
type Event struct {
	Time time.Time `json:"time"`
	Type string    `json:"type"`

	// Kind, Namespace and Name of the package in a transition, its Summary and its Revision.
	Kind      string          `json:"kind,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name,omitempty"`
	Summary   summary.Summary `json:"summary,omitempty"`
	Revision  int64           `json:"revision,omitempty"`
	Text      string          `json:"text,omitempty"`

	// Succeeded is set for the end, and Error explains a failure.
	Succeeded *bool  `json:"succeeded,omitempty"`
	Error     string `json:"error,omitempty"`
}

// events replaces the standard output of a command with -o json. Each line of text for people
// becomes a message.
type events struct{ out io.Writer }

// Write implements io.Writer.
func (e *events) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		// An empty line separates text for people, and is not an event.
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := e.put(Event{Type: EventMessage, Text: strings.TrimSuffix(line, "\n")}); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// put writes an event with the current time.
func (e *events) put(event Event) error {
	event.Time = time.Now().UTC()
	line, err := json.Marshal(event)
	if err == nil {
		_, err = e.out.Write(append(line, '\n'))
	}
	return err
}

// end writes the outcome of the command.
func (e *events) end(failure error) error {
	last := Event{Type: EventEnd, Succeeded: new(bool)}
	if *last.Succeeded = failure == nil; failure != nil {
		last.Error = terminal.Text(failure.Error())
	}
	return e.put(last)
}

// transition writes a change of the awaited package, in the words that people read.
func (e *events) transition(s progress.State, text string) {
	_ = e.put(Event{
		Type: EventTransition, Kind: s.Target.Kind(), Namespace: s.Target.Namespace, Name: s.Target.Name, Summary: s.Summary(), Revision: s.Revision, Text: text,
	})
}

// ReportsUsage describes -o of commands that change something.
const ReportsUsage = "json, a line for each transition and the end, instead of text for people"

// Reports adds -o json to a command that changes something: a line for each message and transition,
// and for its end.
func (c *Command) Reports(cmd *cobra.Command) {
	format, before := "", cmd.PreRunE
	cmd.Flags().StringVarP(&format, "output", "o", "", ReportsUsage)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		// A command can have checks of its own, which come first.
		if before != nil {
			if err := before(cmd, args); err != nil {
				return err
			}
		}

		switch format {
		case "":
			return nil
		case "json":
		default:
			return UsageError(cmd, fmt.Errorf("unknown output format %q: choose json", format))
		}

		out, run := &events{out: c.Streams.Out}, cmd.RunE
		c.Streams.Out = out
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			return cmp.Or(err, out.end(err))
		}

		return nil
	}
}
