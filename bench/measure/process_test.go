package measure

import (
	"testing"
	"time"
)

func TestParseMemory(t *testing.T) {
	t.Parallel()
	const status = "Name:\tmanager\nVmHWM:\t   66000 kB\nVmRSS:\t   60000 kB\nRssAnon:\t   15000 kB\nThreads:\t9\n"
	tests := map[string]struct {
		status string
		want   Memory
		fails  bool
	}{
		"complete":     {status, Memory{RssAnon: 15000 << 10, RSS: 60000 << 10, VmHWM: 66000 << 10}, false},
		"of a zombie":  {"Name:\tmanager\nThreads:\t1\n", Memory{}, true},
		"not a number": {"VmHWM:\tmuch kB\n", Memory{}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseMemory(test.status)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestParseCPU(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stat  string
		want  time.Duration
		fails bool
	}{
		"user and system":       {"7 (manager) S 1 7 7 0 -1 4194560 900 0 0 0 120 30 0 0 20 0 9 0", 1500 * time.Millisecond, false},
		"a name with its signs": {"7 (a) b (c) S 1 7 7 0 -1 4194560 900 0 0 0 1 2 0 0 20 0 9 0", 30 * time.Millisecond, false},
		"cut off":               {"7 (manager) S 1 7", 0, true},
		"not a number":          {"7 (manager) S 1 7 7 0 -1 4194560 900 0 0 0 x 30 0 0", 0, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseCPU(test.stat)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}
