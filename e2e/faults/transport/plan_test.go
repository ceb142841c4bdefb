package transport_test

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"time"

	"lockstep.run/lockstep/e2e/faults/gateway"
)

const (
	// crowd is the number of packages in a run if each package has its own faults.
	crowd = 22
	// crowdThere is crowd if each package has its own connection to another cluster.
	crowdThere = 12
	// few is the number of packages in a run whose faults affect all of them, and more
	// the same if all positions are swept.
	few, more = 6, 8
	// density is the number of faults per package and stage, and dense the same if all
	// positions are swept.
	density, dense = 3, 4
	// outage is how long a cluster is away.
	outage = 4 * time.Second
	// handful is the maximum number of chosen faults that are repeated, to look into them.
	handful = 20
	// wantAll and wantWrites are the minimum numbers of faults if not all are injected.
	wantAll, wantWrites = 110, 80
)

// plan has the faults of one package by stage.
type plan map[string][]fault

// deal takes plans for some packages from a list of faults. The faults of a stage do not
// shift each other's positions.
func deal(faults []fault, lives, perStage int) (plans []plan, rest []fault) {
	for _, f := range faults {
		i := slices.IndexFunc(plans, func(p plan) bool {
			return len(p[f.stage]) < perStage && !slices.ContainsFunc(p[f.stage], func(o fault) bool { return o.shifts(f.position) })
		})
		switch {
		case i >= 0:
			plans[i][f.stage] = append(plans[i][f.stage], f)
		case len(plans) < lives:
			plans = append(plans, plan{f.stage: {f}})
		default:
			rest = append(rest, f)
		}
	}
	return plans, rest
}

// perStart is how many faults a starting manager meets.
const perStart = 4

// batches divides faults among the starts of a manager. The first start of a run gets none.
func batches(faults []fault) [][]fault {
	if len(faults) == 0 {
		return nil
	}
	return append([][]fault{nil}, slices.Collect(slices.Chunk(faults, perStart))...)
}

func comparePositions(a, b position) int {
	return cmp.Or(cmp.Compare(a.stage, b.stage), cmp.Compare(a.kind, b.kind), cmp.Compare(a.which, b.which))
}

// sweeps plans the test. Without a choice it injects one fault for each kind of write and
// read in each stage, each fault of the process in each stage, and each fault of watches.
// The choice "all" injects every fault at every position of a write or read. Any other
// choice is a regular expression that matches names of faults. If only a handful match, each
// is injected three times.
func (s *suite) sweeps(choice string) []sweep {
	writes, reads, watches, starts := s.split()
	alone := slices.Concat(s.cross(writes, gateway.OnWrites()), s.cross(reads, gateway.OnReads()))
	shared, streams := s.cross(writes, s.onProcesses()), s.cross(watches, gateway.OnWatches())
	s.starts = s.cross(starts, gateway.OnStarts())
	if s.there != nil {
		for _, all := range []*[]fault{&alone, &shared, &streams, &s.starts} {
			*all = slices.DeleteFunc(*all, func(f fault) bool { return !f.there() && f.Fault != gateway.Away })
		}
	}
	switch choice {
	case "all":
		streams = thin(streams, inStage(func(f fault) string { return f.kind + string(f.Fault) }), stageOf)
		shared = thin(shared, func(f fault) string {
			if f.Fault == gateway.Away { // all wait for it
				return inStage(kindOf)(f)
			}
			return f.String()
		}, stageOf)
	case "":
		alone = thin(alone, inStage(kindOf), faultOf)
		shared, streams, s.starts = thin(shared, inStage(faultOf), kindOf), thin(streams, faultOf, stageOf), thin(s.starts, kindOf, faultOf)
	default:
		match := regexp.MustCompile(choice)
		for _, all := range []*[]fault{&alone, &shared, &streams, &s.starts} {
			*all = slices.DeleteFunc(*all, func(f fault) bool { return !match.MatchString(f.String()) })
		}
	}
	each, lives := density, few
	if choice != "" {
		each, lives = dense, more
	}
	// A process that is killed too often does not get anywhere.
	shares := density
	if s.there != nil {
		shares-- // each start connects to the target of every package
	}
	if chosen := len(alone) + len(shared) + len(streams); choice != "" && chosen <= handful {
		alone, shared, streams = thrice(alone), thrice(shared), thrice(streams)
		each, shares = 1, 1 // so that it is known which fault it was
	}
	shared = append(shared, streams...)
	s.shuffle(shared)
	part := len(shared) / 4
	all := crowd
	if s.there != nil {
		all = crowdThere
	}
	exact := choice != ""
	return []sweep{
		{name: "one-package", faults: alone, lives: all, perStage: each, exact: exact},
		{name: "all-packages-with-lease", faults: shared[:part], lives: lives, perStage: shares, exact: exact, leader: true},
		{name: "all-packages", faults: shared[part:], lives: lives, perStage: shares, exact: exact, last: true},
	}
}

// onProcesses are the faults of a write that meet everything the manager does.
func (s *suite) onProcesses() []gateway.Fault {
	if s.there == nil {
		return gateway.OnProcesses()
	}
	return append(gateway.OnProcesses(), gateway.Away)
}

func thrice(faults []fault) []fault { return slices.Concat(faults, faults, faults) }

// split separates positions of writes, reads, watches and starts.
func (s *suite) split() (writes, reads, watches, starts []position) {
	for _, p := range s.positions {
		switch {
		case p.stage == startStage:
			starts = append(starts, p)
		case p.watches():
			watches = append(watches, p)
		case p.reads():
			reads = append(reads, p)
		default:
			writes = append(writes, p)
		}
	}
	return writes, reads, watches, starts
}

// cross has every fault at every position, in random order.
func (s *suite) cross(positions []position, faults []gateway.Fault) []fault {
	var all []fault
	for _, p := range positions {
		for _, f := range faults {
			one := fault{position: p, Fault: f}
			one.length = s.length(one)
			all = append(all, one)
		}
	}
	s.shuffle(all)
	return all
}

// chance returns a random number that depends only on the seed and the fault, so that one
// status update more or less hardly changes the plan.
func (s *suite) chance(f fault) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", s.seed, f)
	return h.Sum64()
}

func (s *suite) shuffle(faults []fault) {
	slices.SortFunc(faults, func(a, b fault) int { return cmp.Compare(s.chance(a), s.chance(b)) })
}

// length is how long a fault lasts. Everything waits for a manager that is stopped.
func (s *suite) length(f fault) time.Duration {
	switch f.Fault {
	case gateway.Stop:
		return time.Second
	case gateway.Away:
		return outage
	}
	return time.Second + time.Duration(s.chance(f)%1500)*time.Millisecond
}

func kindOf(f fault) string  { return f.kind }
func faultOf(f fault) string { return string(f.Fault) }
func stageOf(f fault) string { return f.stage }

func inStage(of func(fault) string) func(fault) string {
	return func(f fault) string { return f.stage + " " + of(f) }
}

// thin keeps one fault of each sort, spread evenly over a further property.
func thin(all []fault, sort, spread func(fault) string) []fault {
	at := map[string]int{}
	used := map[string]int{}
	var chosen []fault
	for _, f := range all {
		i, ok := at[sort(f)]
		switch {
		case !ok:
			at[sort(f)] = len(chosen)
			chosen = append(chosen, f)
			used[spread(f)]++
		case used[spread(f)]+1 < used[spread(chosen[i])]:
			used[spread(chosen[i])]--
			used[spread(f)]++
			chosen[i] = f
		}
	}
	return chosen
}
