package phases_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/objects/apinames"
	"lockstep.run/lockstep/internal/phases"
	"lockstep.run/lockstep/internal/probes"
	"lockstep.run/lockstep/test/require"
	"lockstep.run/lockstep/test/scenario"
)

var update = flag.Bool("update", false, "write the current plans into the scenarios")

// TestScenarios plays the files in testdata. Each block of commands changes the core's input, and
// "plan" prints the decision. testdata/README.md lists the commands.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}

	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			got, err := play(string(raw), nil)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
				return
			}
			require.Equal(t, string(raw), got, fmt.Sprintf("%s: go test -run TestScenarios -update rewrites it", file))
		})
	}
}

// TestSavedStates checks that each state of the scenarios gives the same plan after it was saved
// and read.
func TestSavedStates(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	saved := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = play(string(raw), func(state *phases.State, printed string) {
			text := scenario.Format(state)
			if strings.Contains(text, "# not expressed") {
				return
			}
			saved++
			again, err := play(text, nil)
			if err != nil {
				t.Errorf("%s: %v\n%s", file, err, text)
			} else if diff := cmp.Diff(versions.ReplaceAllString(text+printed, ""), versions.ReplaceAllString(again, "")); diff != "" {
				t.Errorf("%s: a saved state has another plan\n%s", file, diff)
			}
		})
		require.NoError(t, err)
	}

	if saved < 100 {
		t.Errorf("%d states were saved", saved)
	}
}

// versions matches resource versions in a plan.
var versions = regexp.MustCompile(`@\d+`)

// play runs the commands of a scenario and returns the scenario with their output. If planned is
// not nil, it is called with each state and its printed plan.
func play(text string, planned func(*phases.State, string)) (string, error) {
	p := newPlayer()
	var out strings.Builder
	lines := bufio.NewScanner(strings.NewReader(text))
	answer := false // within the answer printed before
	for number := 1; lines.Scan(); number++ {
		line := lines.Text()
		if answer {
			if answer = line != ""; answer {
				continue
			}
		}
		fmt.Fprintln(&out, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := p.do(line); err != nil {
			return "", fmt.Errorf("line %d, %q: %w", number, line, err)
		}
		if line == "plan" {
			state := p.snapshot()
			printed := p.print(phases.Next(state))
			if planned != nil {
				planned(state, printed)
			}
			out.WriteString(printed)
			answer = true
		}
	}

	return strings.TrimRight(out.String(), "\n") + "\n", nil
}

// player holds the core's input.
type player struct {
	state    *phases.State
	sights   map[objects.Key]*phases.LiveState
	unserved map[string]bool
	starting map[string]bool
	behind   map[string]bool
	graces   map[objects.Key]time.Time
	versions int
}

func newPlayer() *player {
	p := &player{sights: map[objects.Key]*phases.LiveState{}, unserved: map[string]bool{}, starting: map[string]bool{}, behind: map[string]bool{}, graces: map[objects.Key]time.Time{}}
	p.state = &phases.State{
		Owner:   objects.Owner{Names: apinames.Default, OwnerKey: objects.OwnerKey{Kind: "ObjectDeployment", Name: "app"}, UID: ownerUID},
		Applied: phases.AppliedObjects{}, Now: noon, Controllers: related("set", "earlier", "later"),
	}
	return p
}

// snapshot completes the state with the contents of the watches. Probes select a kind if any of its
// objects is ready or sick.
func (p *player) snapshot() *phases.State {
	p.state.Live = map[objects.Key]phases.LiveState{}
	probed := sets.Set[schema.GroupKind]{}
	for key, sight := range p.sights {
		p.state.Live[key] = p.look(key)
		if sight.Object.Trimmed != nil {
			probed.Insert(key.GroupKind())
		}
	}

	for _, r := range p.state.Revisions {
		r.Probed, r.Results, r.Reached = probed, map[objects.Key]probes.Result{}, sets.Set[schema.GroupKind]{}
		for gk := range probed {
			if !p.behind[gk.Kind] {
				r.Reached.Insert(gk)
			}
		}
		for _, d := range r.Objects() {
			p.state.Live[d.Key] = p.look(d.Key)
		}
	}

	for _, key := range p.state.Strays {
		p.state.Live[key] = p.look(key)
	}

	p.state.Evaluated(func(r *phases.Revision, key objects.Key) {
		if obs := p.state.Live[key].Object; obs != nil {
			r.Results[key] = p.evaluate(key, obs)
		}
	})

	return p.state
}

func (p *player) evaluate(key objects.Key, obs *objects.Observed) probes.Result {
	switch {
	case obs.Trimmed == nil:
		return probes.Result{Status: probes.True}
	case !obs.Watched:
		return probes.Result{Messages: []string{"the watch does not show it yet"}, Unseen: true}
	case string(obs.Trimmed) == "ready":
		return probes.Result{Status: probes.True}
	}
	return probes.Result{Status: probes.False, Messages: []string{"not ready"}, GraceSince: p.graces[key]}
}

func (p *player) look(key objects.Key) phases.LiveState {
	sight := phases.LiveState{Synced: !p.starting[key.Kind], Unserved: p.unserved[key.Kind]}
	if s := p.sights[key]; s != nil && sight.Synced && !sight.Unserved {
		sight.Object, sight.Unlabelled = s.Object, s.Unlabelled
	}
	return sight
}

func parseKey(text string) objects.Key {
	kind, name, _ := strings.Cut(text, "/")
	kind, group, _ := strings.Cut(kind, ".")
	return objects.Key{Group: group, Kind: kind, Name: name}
}

func (p *player) revision(name string) *phases.Revision {
	for _, r := range p.state.Revisions {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// do runs one command.
func (p *player) do(line string) error {
	words := strings.Fields(line)
	rest := words[1:]
	if strings.HasPrefix(line, "  ") {
		return p.addPhase(words[0], rest)
	}

	switch words[0] {
	case "plan":
		return nil
	case "revision":
		r := &phases.Revision{Name: rest[0], UID: types.UID(rest[0]), Number: int64(len(p.state.Revisions) + 1)}
		p.state.Revisions = append(p.state.Revisions, r)
		return p.set(r, rest[1:])
	case "set":
		return p.set(p.revision(rest[0]), rest[1:])
	case "drop":
		p.state.Revisions = slices.DeleteFunc(p.state.Revisions, func(r *phases.Revision) bool { return r.Name == rest[0] })
	case "live":
		return p.live(parseKey(rest[0]), rest[1:])
	case "gone":
		delete(p.sights, parseKey(rest[0]))
	case "confirmed":
		p.state.Applied[parseKey(rest[0])] = &phases.Applied{Gone: true}
	case "restart":
		p.state.Applied = phases.AppliedObjects{}
		for _, r := range p.state.Revisions {
			for i := range r.Phases {
				r.Phases[i].Leave()
			}
		}
	case "unserved":
		p.unserved[rest[0]] = true
	case "served":
		delete(p.unserved, rest[0])
	case "starting":
		p.starting[rest[0]] = true
	case "started":
		delete(p.starting, rest[0])
	case "behind":
		p.behind[rest[0]] = true
	case "fail":
		return p.fail(parseKey(rest[0]), rest[1:])
	case "stray":
		p.state.Strays = append(p.state.Strays, parseKey(rest[0]))
	case "pause":
		p.state.Paused = true
	case "report":
		p.state.ReportDrift = true
	case "correct":
		p.state.ReportDrift = false
	case "teardown":
		p.state.Teardown = true
	case "orphan":
		p.state.Teardown, p.state.Orphan = true, true
	case "wait":
		d, err := time.ParseDuration(rest[0])
		p.state.Now = p.state.Now.Add(d)
		return err
	default:
		return fmt.Errorf("no such command")
	}

	return nil
}

// addPhase adds a phase to the last revision, as "name: Kind/name=value".
func (p *player) addPhase(name string, items []string) error {
	phase := phases.Phase{Name: strings.TrimSuffix(name, ":")}
	for _, item := range items {
		text, flags, _ := strings.Cut(item, ",")
		ref, value, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("%q has no value", item)
		}
		phase.Objects = append(phase.Objects, &objects.Desired{
			Key: parseKey(ref), Version: "v1", Raw: []byte(value), Content: digest(value),
			Collision: objects.CollisionProtection(flags), Keep: flags == "keep",
		})
	}

	r := p.state.Revisions[len(p.state.Revisions)-1]
	r.Phases = append(r.Phases, phase)
	return nil
}

func (p *player) set(r *phases.Revision, words []string) error {
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "opened":
			n, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			r.SetOpened(n)
		case "number":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return err
			}
			r.Number = n
		case "ahead":
			n, err := strconv.Atoi(value)
			if err != nil {
				return err
			}
			r.SetPreopened(n)
		case "entered", "earlier", "proven":
			n := len(r.Phases)
			if value != "" {
				var err error
				if n, err = strconv.Atoi(value); err != nil {
					return err
				}
			}
			mark(r, name, n)
		case "release":
			r.Metadata.Labels, r.Labels = map[string]string{"version": value}, digest(value)
		case "blocked":
			r.Block(value)
		case "claimed":
			r.SetClaimed()
		case "succeeded":
			r.SetSucceeded(true)
		case "paused":
			r.Pause(true)
		case "resumed":
			r.Pause(false)
		case "removing":
			r.SetRemoving()
		case "keepall":
			r.SetReleasing()
		case "incomplete":
			r.MarkIncomplete(r.Blocked())
		default:
			return fmt.Errorf("%q is not a property of a revision", word)
		}
	}

	return nil
}

// mark sets a property of the first n phases.
func mark(r *phases.Revision, name string, n int) {
	if name == "proven" {
		r.Confirm(n)
		return
	}
	for i := range r.Phases[:n] {
		if name == "entered" {
			r.Enter(i)
		} else {
			r.Phases[i].SetWrittenBefore()
		}
	}
}

// live puts an object into the cluster. By default this process wrote it, the watch shows it, and
// no probe selects it.
func (p *player) live(key objects.Key, words []string) error {
	p.versions++
	tmpl := digest(key.String(), "template")
	obs := &objects.Observed{
		UID: types.UID(key.String()), ResourceVersion: strconv.Itoa(p.versions), Watched: true,
		Owners:     apinames.Default.References([]metav1.OwnerReference{}, nil),
		Projection: digest("as written"), ProjectedBy: tmpl,
	}

	rec := &phases.Applied{UID: obs.UID, Template: tmpl, Baseline: obs.Projection, Labels: digest("1")}
	p.state.Applied[key], p.sights[key] = rec, &phases.LiveState{Object: obs}
	obs.Owners = controlledBy("ObjectDeployment", "app", string(ownerUID))
	delete(p.graces, key)
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "value":
			rec.Content = digest(value)
		case "revision":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return err
			}
			obs.Revision = n
		case "release":
			if rec.Labels = digest(value); value == "none" {
				rec.Labels = objects.Digest{}
			}
		case "by":
			obs.Owners = controlledBy("Someone", value, value)
		case "free":
			obs.Owners = nil
		case "ready", "sick":
			obs.Trimmed = []byte(name)
		case "grace":
			obs.Trimmed, p.graces[key] = []byte("sick"), p.state.Now
		case "unwatched":
			obs.Watched = false
		case "unlabelled":
			obs.Watched, p.sights[key].Unlabelled = false, true
		case "drifted":
			obs.Projection = digest("drift")
		case "terminating":
			obs.Terminating = true
		case "stuck":
			obs.Terminating, obs.CollectedSince = true, p.state.Now.Add(-time.Hour).Unix()
		case "keep":
			obs.Keep = true
		case "unknown":
			delete(p.state.Applied, key)
		default:
			return fmt.Errorf("%q is not a property of an object", word)
		}
	}

	return nil
}

// fail records that the last write of an object failed. The words are the content and the kind of
// failure.
func (p *player) fail(key objects.Key, words []string) error {
	f := &phases.Failure{Content: digest(words[0]), Message: "refused by a webhook", Until: p.state.Now.Add(time.Minute)}
	for _, word := range words[1:] {
		switch word {
		case "preflight":
			f.Preflight = true
		case "collision":
			f.Collision = true
		default:
			return fmt.Errorf("%q is not a kind of failure", word)
		}
	}

	if sight := p.sights[key]; sight != nil {
		f.UID = sight.Object.UID
	}

	p.state.Applied.At(key).Failure = f
	return nil
}

// print formats a plan.
func (p *player) print(plan phases.Plan) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  > "+format+"\n", args...) }
	for _, s := range plan.Steps {
		line("%s", stepText(s))
	}

	if e := plan.Entry; e != nil {
		line("enter phase %s of %s:", e.Revision.Phases[e.Phase].Name, e.Revision.Name)
		for _, s := range e.Steps {
			line("  %s", stepText(s))
		}
	}

	if g := plan.Gate; g != nil {
		verb := "open"
		if g.Preopened {
			verb = "begin"
		}
		line("%s %s of %s%s", verb, phasesText(g), g.Revision.Name, proofText(g))
	}

	if plan.TornDown {
		line("nothing is left to remove")
	}
	if !plan.Retry.IsZero() {
		line("ask again after %s", plan.Retry.Sub(p.state.Now))
	}

	for i, r := range p.state.Revisions {
		for _, text := range reportText(&plan.Reports[i], r.Name) {
			line("%s", text)
		}
	}

	return b.String()
}

// phasesText names the phases of a gate.
func phasesText(g *phases.Gate) string {
	first, last := g.Revision.Phases[g.Phase].Name, g.Revision.Phases[g.Last].Name
	if g.Phase == g.Last {
		return "phase " + first
	}
	return "phases " + first + " to " + last
}

func stepText(s phases.Step) string {
	text := s.Action.String() + " " + s.Key.Kind + "/" + s.Key.Name
	if s.Desired != nil && s.Action != phases.Confirm {
		text += "=" + string(s.Desired.Raw)
	}
	if v := s.Metadata.Labels["version"]; v != "" && s.Action != phases.Confirm {
		text += " release " + v
	}
	if s.Background {
		text += " in the background"
	}
	return text
}

func proofText(g *phases.Gate) string {
	var proven []string
	for key, version := range g.Probed {
		proven = append(proven, key.Kind+"/"+key.Name+"@"+version)
	}
	if len(proven) == 0 {
		return ""
	}
	slices.Sort(proven)
	return ", once proven: " + strings.Join(proven, " ")
}

func reportText(r *phases.Report, name string) []string {
	var lines []string
	for _, ph := range r.Phases {
		counts := []string{fmt.Sprintf("%d of %d ready", ph.Ready, ph.Total)}
		for _, c := range []struct {
			n    int
			what string
		}{{ph.Pending, "pending"}, {ph.Taken, "taken"}, {ph.Gone, "gone"}} {
			if c.n > 0 {
				counts = append(counts, fmt.Sprintf("%d %s", c.n, c.what))
			}
		}
		if ph.Opened || len(counts) > 1 {
			lines = append(lines, fmt.Sprintf("%s %s: %s", name, ph.Name, strings.Join(counts, ", ")))
		}
	}

	for _, b := range r.Blocking {
		was := ""
		switch {
		case b.InGrace:
			was = ", has just changed"
		case !b.NeverReady:
			was = ", was ready"
		}
		lines = append(lines, fmt.Sprintf("%s %s waits for %s/%s: %s%s", name, b.Phase, b.Key.Kind, b.Key.Name, b.Message, was))
	}

	for _, d := range r.Drifted {
		lines = append(lines, fmt.Sprintf("%s %s drifted: %s/%s %s", name, d.Phase, d.Key.Kind, d.Key.Name, d.Message))
	}

	if r.Unknown {
		lines = append(lines, name+" is not known yet")
	}

	return lines
}
