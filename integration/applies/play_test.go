package applies_test

import (
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
// It returns the failures, by the index of the history, and how many outcomes were compared.
func play(tb testing.TB, l *lab, histories []*history) (map[int]*failure, int) {
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
	failures, cases := map[int]*failure{}, 0
	for i, t := range trials {
		cases += t.cases
		if t.failure != nil {
			failures[i] = t.failure
		}
	}
	return failures, cases
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
