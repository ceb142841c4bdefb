package transport_test

import (
	"fmt"
	"strings"
	"time"

	"lockstep.run/lockstep/e2e/faults/gateway"
)

// position is a place in the life of a package at which a fault can be injected.
// It is counted in one namespace, so that it does not depend on other packages.
type position struct {
	stage string
	// kind of the write or read, or "watch of" a resource.
	kind string
	// which of them: the name of an object of the package, or a number from 1.
	which string
}

// String names the position as a plan and a report do.
func (p position) String() string { return p.stage + ": " + p.kind + " " + p.which }

// shifts reports whether a fault at one position can change how often the other one
// is passed: numbered ones of a kind depend on each other.
func (p position) shifts(o position) bool {
	return p.kind == o.kind && (strings.HasPrefix(p.which, "#") || p.which == o.which)
}

// fault is planned for one package in one stage.
type fault struct {
	position
	gateway.Fault
	// length is how long the fault lasts, if it does.
	length time.Duration
}

// String names the fault; LOCKSTEP_FAULTS matches it.
func (f fault) String() string { return f.position.String() + ": " + string(f.Fault) }

const (
	// startStage is the stage of reads that do not concern a package: they belong to a
	// start of the manager.
	startStage  = "start"
	readPrefix  = "read of "
	watchPrefix = "watch of "
	// thereSuffix marks reads and watches in the cluster of the objects.
	thereSuffix = " in the target"
)

func (p position) reads() bool   { return strings.HasPrefix(p.kind, readPrefix) }
func (p position) watches() bool { return strings.HasPrefix(p.kind, watchPrefix) }

// there reports whether the position is in another cluster than the manager's.
func (p position) there() bool {
	return strings.HasPrefix(p.kind, "object ") || strings.HasSuffix(p.kind, thereSuffix)
}

func (p position) writes() bool { return !p.reads() && !p.watches() }

// counter gives places their positions.
type counter map[string]int

// next returns the position of the next request of a kind. Requests for objects of the package
// have the object's name, all others have a number.
func (c counter) next(stage, kind, name string) position {
	which := ""
	if strings.HasPrefix(kind, "object ") || kind == "event" {
		which = name
	}
	c[kind+which]++
	n := c[kind+which]
	switch {
	case which == "":
		which = fmt.Sprintf("#%d", n)
	case n > 1:
		which = fmt.Sprintf("%s #%d", which, n)
	}
	return position{stage, kind, which}
}
