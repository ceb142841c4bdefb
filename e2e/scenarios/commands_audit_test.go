package scenarios_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep.run/lockstep/e2e/faults/invariants"
	"lockstep.run/lockstep/e2e/harness"
	"lockstep.run/lockstep/e2e/sandbox"
)

// auditCommands show the manager's requests in the API server's audit log.
var auditCommands = commands{
	// mark: following commands count requests from here on.
	"mark": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) == 0, "mark")
		s.mark = s.position()
	},
	// writes: prints the writes of objects of the script's packages by the manager
	// since the mark that took effect, one a line, as
	//
	//	0 write configmap/web
	//	1 delete secret/password
	//
	// with the position of the object's phase, from 0. The order within a phase has no
	// meaning, so consecutive writes of one phase are sorted. JSON patches are omitted: they
	// migrate managed fields before an apply, or remove finalizers of an object.
	"writes": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) == 0, "writes")
		writes, err := s.writesSince(s.Context(), s.mark)
		s.check(err)
		s.print("") // without it, stdout would be a previous command's if there are no writes
		for _, w := range sortedWithinPhases(writes) {
			s.print(w.String() + "\n")
		}
	},
	// quiet DURATION: waits until the manager has sent no request for that time, except
	// watches and requests for its Lease. The limit is harness.Patience.
	"quiet": func(s *scenario, _ bool, args []string) {
		s.usage(len(args) == 1, "quiet DURATION")
		d, err := time.ParseDuration(args[0])
		s.check(err)
		s.quiet(d)
	},
}

func (s *scenario) quiet(d time.Duration) {
	ctx, cancel := context.WithTimeoutCause(s.Context(), patience, fmt.Errorf("the manager does not come to rest within %s", patience))
	defer cancel()
	from := s.position()
	if _, err := s.audit.Settled(ctx, from, d, byManager...); err != nil {
		entries, _ := s.audit.Since(s.Context(), from, byManager...)
		for _, e := range entries[max(0, len(entries)-20):] {
			s.Logf("%s %d %s %s", stamp(e.Received), e.Code, e.Verb, e.RequestURI)
		}
		s.Fatal(err)
	}
}

// byManager accepts the requests of the budget.
var byManager = []sandbox.Filter{
	sandbox.ByUser(harness.ManagerUser()),
	func(e sandbox.Entry) bool { return e.Verb != "watch" && e.Object.Resource != "leases" },
}

// write is one write of an object of a package.
type write struct {
	sandbox.Entry
	phase int
	id    string
}

func (w write) String() string {
	verb := w.Verb
	if verb != "delete" {
		verb = "write" // whether a create is a POST or an apply is the engine's business
	}
	return fmt.Sprintf("%d %s %s", w.phase, verb, w.id)
}

// writesSince returns the successful writes of packages' objects by the manager.
func (s *scenario) writesSince(ctx context.Context, since sandbox.Position) ([]write, error) {
	entries, err := s.audit.Since(ctx, since, append(byManager, sandbox.Writes(),
		func(e sandbox.Entry) bool { return e.Code < 300 && e.Object.Subresource == "" && !jsonPatch(e) })...)
	if err != nil {
		return nil, err
	}
	known := map[invariants.Object]object{}
	for _, r := range s.releases {
		for _, o := range r.objects {
			known[s.audited(o)] = o
		}
	}
	var writes []write
	for _, e := range entries {
		if o, ok := known[invariants.Of(e)]; ok {
			writes = append(writes, write{Entry: e, phase: o.phase, id: o.id()})
		}
	}
	return writes, nil
}

// jsonPatch distinguishes a JSON patch from an apply, which is forced or strict.
func jsonPatch(e sandbox.Entry) bool {
	return e.Verb == "patch" && !strings.Contains(e.RequestURI, "force=true") && !strings.Contains(e.RequestURI, "fieldValidation=")
}

// audited returns an object of a release as the audit log names it.
func (s *scenario) audited(o object) invariants.Object {
	mapping, err := s.env.Client.RESTMapper().RESTMapping(o.template.GroupVersionKind().GroupKind())
	s.check(err)
	return invariants.Object{
		Group: mapping.Resource.Group, Resource: mapping.Resource.Resource, Namespace: s.namespaceOf(o), Name: o.template.GetName(),
	}
}

// namespaceOf returns the namespace that an object of a release is in.
func (s *scenario) namespaceOf(o object) string {
	if o.template.GetNamespace() != "" {
		return o.template.GetNamespace()
	}
	return s.namespace
}

func sortedWithinPhases(writes []write) []write {
	sorted := slices.Clone(writes)
	for begin := 0; begin < len(sorted); {
		end := begin
		for end < len(sorted) && sorted[end].phase == sorted[begin].phase && sorted[end].Verb == "delete" == (sorted[begin].Verb == "delete") {
			end++
		}
		slices.SortStableFunc(sorted[begin:end], func(a, b write) int { return strings.Compare(a.String(), b.String()) })
		begin = end
	}
	return sorted
}
