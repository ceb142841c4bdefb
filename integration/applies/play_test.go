package applies_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// failure is a failed step of a history.
type failure struct {
	history *history
	step    int
	text    string
}

func (f *failure) String() string {
	lines := strings.SplitAfter(f.history.String(), "\n")
	at := min(f.step+1, len(lines)-1)
	if f.history.origin != "" {
		at++
	}
	lines[at] = "→" + lines[at][1:]
	return strings.Join(lines, "") + f.text
}

// counts are the numbers of steps in trials. Cases are versions and edits with a compared outcome.
type counts struct {
	Cases, Versions, Refused, Invalid, Edits, EditsRefused, Restarts int
}

func (c counts) String() string {
	return fmt.Sprintf("%d cases: %d versions, %d that all refuse, %d invalid; %d edits, %d refused; %d restarts",
		c.Cases, c.Versions, c.Refused, c.Invalid, c.Edits, c.EditsRefused, c.Restarts)
}

func (c *counts) add(other counts) {
	to, from := reflect.ValueOf(c).Elem(), reflect.ValueOf(other)
	for i := range to.NumField() {
		to.Field(i).SetInt(to.Field(i).Int() + from.Field(i).Int())
	}
}

// cause is the failure without names and values.
func (f *failure) cause() string {
	text := strings.TrimSpace(f.text)
	if i := strings.Index(text, "is invalid: "); i > 0 {
		head, _, _ := strings.Cut(text, "\n")
		return head + " " + text[i+12:min(len(text), i+140)]
	}
	line, _, _ := strings.Cut(text, "\n")
	return f.history.kind.name + " " + line
}

// play plays histories in parallel, each in several steps, and ends with a restart, which must not
// write.
// It returns the failures, by the index of the history.
func play(tb testing.TB, l *lab, histories []*history) (map[int]*failure, counts) {
	tb.Helper()
	ctx := tb.Context()
	trials := make([]*trial, len(histories))
	var processes []*process
	defer func() {
		for _, p := range processes {
			p.stop()
		}
	}()
	// restart starts a process for some trials.
	restart := func(some []*trial) {
		if len(some) == 0 {
			return
		}
		p := newProcess(tb, l)
		for _, t := range some {
			t.subject.attach(p)
		}
		processes = append(processes, p)
		p.start(tb)
	}
	steps := 0
	for i, h := range histories {
		trials[i] = newTrial(l, h)
		steps = max(steps, len(h.events))
	}
	each(trials, func(t *trial) { t.prepare(ctx) })
	restart(trials)
	for step := range steps {
		var some, restarted []*trial
		for _, t := range trials {
			if step < len(t.events) && t.failure == nil {
				some = append(some, t)
				if t.events[step].restart {
					restarted = append(restarted, t)
				}
			}
		}
		restart(restarted)
		each(some, func(t *trial) { t.play(ctx, step) })
	}
	var left []*trial
	for _, t := range trials {
		if t.failure == nil {
			left = append(left, t)
		}
	}
	restart(left)
	each(left, func(t *trial) {
		t.atRest(ctx, len(t.events)-1, "it was written at rest")
		t.afterRestart(ctx, len(t.events)-1)
	})
	failures, total := map[int]*failure{}, counts{}
	for i, t := range trials {
		total.add(t.counts)
		if t.failure != nil {
			failures[i] = t.failure
		}
	}
	return failures, total
}

// workers is how many trials are played at a time: requests wait for the API server.
const workers = 8

func each(trials []*trial, do func(*trial)) {
	queue := make(chan *trial)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for t := range queue {
				t.guarded(do)
			}
		})
	}
	for _, t := range trials {
		queue <- t
	}
	close(queue)
	wait.Wait()
}

// guarded turns a panic into a failure of the trial.
func (t *trial) guarded(do func(*trial)) {
	defer func() {
		if p := recover(); p != nil {
			t.fail(0, "panic: %v", p)
		}
	}()
	do(t)
}
