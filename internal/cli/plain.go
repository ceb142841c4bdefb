package cli

import (
	"fmt"
	"io"
	"time"

	"lockstep.run/lockstep/internal/cli/progress"
)

// plain writes one line for every transition, with the time since the beginning.
type plain struct {
	out  io.Writer
	last progress.State
}

func (p *plain) show(s progress.State, elapsed time.Duration) {
	for _, line := range progress.Lines(p.last, s) {
		fmt.Fprintf(p.out, "%7s  %s\n", progress.Elapsed(elapsed), line)
	}
	p.last = progress.Remember(p.last, s)
}

func (p *plain) close(progress.State, time.Duration) {}
