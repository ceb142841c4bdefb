package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/ptr"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/cli/progress"
	"lockstep.run/lockstep/internal/kube/summary"
	"lockstep.run/lockstep/test/clustertest"
	"lockstep.run/lockstep/test/golden"
	"lockstep.run/lockstep/test/require"
)

// With -o json, standard output has only JSON: a line for each message and transition, and an end
// with the outcome.
func TestEvents(t *testing.T) {
	t.Parallel()
	target := progress.Target{Scope: corev1alpha1.ScopeNamespaced, Namespace: "shop", Name: "web"}
	probing := progress.State{Target: target, Observed: true, Unpacked: true, Revision: 2, Phases: []progress.Phase{{Name: "deploy", State: "Probing", Ready: 1, Total: 3}}}
	ready := probing
	ready.Available, ready.Ready = true, true
	ready.Phases = []progress.Phase{{Name: "deploy", State: "Ready", Ready: 3, Total: 3}}
	for _, failure := range []error{nil, errors.New("it is not\navailable")} {
		var out, human bytes.Buffer
		c := &Command{Streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &human}}
		cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error {
			fmt.Fprint(c.Streams.Out, "package shop/web \"created\"\n\nwith parts")
			w := &Waiter{Streams: c.Streams}
			last := w.show(progress.State{Target: target}, probing, progress.Outcome{}, 0)
			last = w.show(last, probing, progress.Outcome{}, 0)
			w.show(last, ready, progress.Outcome{Done: true}, 0)
			return failure
		}}
		c.AddWait(cmd, WaitTimeout, "")
		cmd.SetArgs([]string{"-o", "json"})
		if err := cmd.Execute(); !errors.Is(err, failure) || (err == nil) != (failure == nil) {
			t.Errorf("got %v, want %v", err, failure)
		}
		var types, texts []string
		var last Event
		for line := range strings.Lines(out.String()) {
			last = Event{}
			if err := json.Unmarshal([]byte(line), &last); err != nil || last.Time.IsZero() {
				t.Fatalf("%v in %q", err, line)
			}
			types, texts = append(types, last.Type), append(texts, last.Text)
			if last.Type == EventTransition && (last.Kind != "Package" || last.Namespace != "shop" || last.Name != "web" || last.Summary == "") {
				t.Errorf("a transition: %s", line)
			}
		}
		if len(types) < 5 || types[0] != EventMessage || texts[0] != `package shop/web "created"` || types[1] != EventMessage || texts[1] != "with parts" || types[2] != EventTransition {
			t.Errorf("got %v: %q", types, texts)
		}
		if last.Type != EventEnd || *last.Succeeded != (failure == nil) || (last.Error != "") != (failure != nil) {
			t.Errorf("the end: %+v", last)
		}
		if got := strings.Join(texts, "\n"); strings.Count(got, "deploy") != 2 {
			t.Errorf("transitions: %s", got)
		}
		if human.Len() > 0 {
			t.Errorf("for people: %s", human.String())
		}
	}
	golden.JSON(t, "events", []Event{
		{Type: EventTransition, Kind: "Package", Namespace: "shop", Name: "web", Summary: summary.Progressing, Revision: 1, Text: "phase deploy"},
		{Type: EventEnd, Succeeded: ptr.To(false), Error: "it is not available"},
	})
	c := &Command{}
	cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return nil }}
	c.AddWait(cmd, WaitTimeout, "")
	cmd.SetArgs([]string{"-o", "yaml"})
	require.ErrorContains(t, cmd.Execute(), "choose json", "another format")
}

// Only an explicit yes confirms. Without a terminal there is no question.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]error{
		"y\n": nil, "YES\n": nil, " yes ": nil, "\n": errNotConfirmed, "": errNotConfirmed, "n\ny\n": errNotConfirmed, "yesterday\n": errNotConfirmed,
	} {
		if err := readAnswer(strings.NewReader(answer)); !errors.Is(err, want) {
			t.Errorf("%q: %v", answer, err)
		}
	}
	var out bytes.Buffer
	if err := (&Command{Streams: clustertest.Streams(&out, &out)}).Confirm("Sure?"); !errors.Is(err, errNotInteractive) {
		t.Errorf("without a terminal: %v", err)
	}
}
