package progress

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/objects"
)

// Cause is the reason why a package does not match its spec, and the remedy. status, list, explain,
// the page and the waiting commands all get it from [CauseOf].
type Cause struct {
	// Text is the reason, along with Details, which are one line each.
	Text    string
	Details []string
	Remedy  string
	// Blocked means that Details are about the objects of Phase that block it.
	Blocked bool
	Phase   string
}

// String has several lines if there are details.
func (c Cause) String() string {
	switch {
	case len(c.Details) > 0:
		return listed(c.Text, append(slices.Clip(c.Details), c.Remedy))
	case c.Remedy != "":
		return c.Text + ". " + c.Remedy
	}
	return c.Text
}

// Line is the whole cause in one line.
func (c Cause) Line() string {
	text := strings.Join(strings.Fields(c.body()), " ")
	if c.Remedy != "" {
		text += ". " + c.Remedy
	}
	return text
}

// body returns String without the remedy.
func (c Cause) body() string {
	c.Remedy = ""
	return c.String()
}

// Culprit returns the cause as a text.
func Culprit(s State) string { return CauseOf(s).String() }

// CauseOf returns the cause that a rollout or a deletion waits for.
func CauseOf(s State) Cause {
	switch {
	case s.Lost != "":
		return Cause{Text: "the connection to the cluster is lost (" + s.Lost + "), so its state is not known"}
	case s.Gone:
		return Cause{Text: "it does not exist"}
	case s.Deleting:
		return s.holding()
	case s.Paused != "":
		return Cause{Text: "it is paused, so the engine does not write it (" + oneLine(s.Paused) + ")", Remedy: "To resume it: kubectl package unpause " + s.Target.Flags()}
	case s.Awaiting != "":
		return ending(Cause{Text: oneLine(s.Awaiting)})
	case s.Away != "":
		return Cause{Text: "its target is not connected", Details: []string{s.Away}, Remedy: s.AwayRemedy}
	case s.Invalid != "":
		return s.invalid()
	case s.Unresolved != "":
		return Cause{Text: "no version can be chosen", Details: lines(s.Unresolved), Remedy: s.UnresolvedRemedy}
	case s.PullError != "":
		return s.notPulled()
	case s.Unsatisfied:
		return Cause{Text: "its dependencies cannot be satisfied", Details: lines(s.Waiting)}
	case s.Waiting != "":
		return Cause{Text: "it waits for its dependencies", Details: lines(s.Waiting)}
	case !s.Observed:
		return Cause{Text: "no manager has noticed it", Remedy: managerRunning}
	}

	return s.rollingOut()
}

// ending removes the last sentence, which is the remedy, from the first detail, or from a text
// without details.
func ending(c Cause) Cause {
	of := &c.Text
	if len(c.Details) > 0 {
		of = &c.Details[0]
	}
	*of, c.Remedy = LastSentence(*of)
	return c
}

// lastSentences matches several sentences. The last one starts with a capital letter.
var lastSentences = regexp.MustCompile(`^(.*)\. (\p{Lu}.*)$`)

// LastSentence splits off the last of several sentences, the remedy.
func LastSentence(text string) (before, last string) {
	if m := lastSentences.FindStringSubmatch(text); m != nil {
		return m[1], m[2]
	}
	return text, ""
}

// outside are reasons of problems that are not in the package.
var outside = []violation.Reason{
	violation.ReasonConfigInvalid, violation.ReasonConstraintUnmet, violation.ReasonSourceMissing, violation.ReasonSourceInvalid,
	violation.ReasonPatchInvalid, violation.ReasonMetadataInvalid,
	violation.ReasonComponentsDisabled, violation.ReasonComponentNotFound, violation.ReasonComponentPath, // of spec.component
	violation.ReasonLabelsInvalid, // of the name of the Package; a label of an object has a file
}

// ofThePackage reports whether a problem can only be corrected in the package. A problem starts
// with its reason, its file, and its component in brackets.
func ofThePackage(problem string) bool {
	reason, _, _ := strings.Cut(problem, ": ")
	if i := strings.LastIndex(reason, " ["); i >= 0 && strings.HasSuffix(reason, "]") {
		reason = reason[:i]
	}
	return !slices.Contains(outside, violation.Reason(reason))
}

// invalid returns the cause of a package that cannot be rendered or checked.
func (s State) invalid() Cause {
	c := Cause{Text: "the package cannot be installed as it is", Details: lines(s.Invalid)}
	again := "kubectl package retry " + s.Target.Flags()
	// One problem of the package suffices: a change of the spec alone cannot help then.
	if slices.ContainsFunc(c.Details, ofThePackage) {
		c.Remedy = "Correct it in the package and push it again, then: " + again
		return c
	}
	c = ending(c)
	c.Remedy = strings.TrimSpace(c.Remedy + " A change of the spec is tried at once; otherwise: " + again)

	return c
}

// notPulled returns the cause of an image that cannot be pulled or trusted.
func (s State) notPulled() Cause {
	c := Cause{Text: "the image cannot be pulled", Details: []string{oneLine(s.PullError)}}
	if s.NotVerified {
		c = Cause{Text: oneLine(s.PullError)}
	}
	c = ending(c)
	if remedy := strings.TrimRight(c.Remedy, "."); remedy != "" {
		c.Remedy = remedy + ". "
	}
	c.Text = strings.TrimSuffix(c.Text, ".")
	c.Remedy += "Once that is fixed, it is retried automatically; to retry at once: kubectl package retry " + s.Target.Flags()

	return c
}

// rollingOut returns the cause that the rollout of an installable package waits for.
func (s State) rollingOut() Cause {
	switch {
	case !s.Unpacked && s.Stalled == "":
		return Cause{Text: "the manager has not pulled the image " + s.Image + " yet"}
	case len(s.Blocking) > 0:
		return s.blocked("waits for")
	case s.Stalled != "":
		c := Cause{Text: "the rollout is stuck", Details: []string{oneLine(s.Stalled)}}
		if s.RolledBack {
			c = ending(c)
		}
		return c
	case s.Retrying != "":
		return Cause{
			Text: "the API server refuses or delays the manager's writes, which are retried", Details: []string{s.Retrying},
			Remedy: "Check the API server, its load and its webhooks: kubectl get --raw '/readyz?verbose'",
		}
	}

	if ph, ok := s.unfinished(); ok {
		return Cause{Text: fmt.Sprintf("phase %s is %s, %s objects are ready", ph.Name, ph.Word(), ph.Count())}
	}
	if s.Unavailable != "" {
		return Cause{Text: "it is not available", Details: []string{s.Unavailable}}
	}

	return Cause{Text: s.unreported()}
}

// Unreported reports whether the cause of an incomplete rollout is unknown because the manager has
// not reported it.
func Unreported(s State) bool { return Culprit(s) == s.unreported() }

// unreported describes the manager's progress by the status it has written.
func (s State) unreported() string {
	switch {
	case s.Revision == 0:
		return "the image is unpacked, but the manager has not reported on a revision yet"
	case len(s.Phases) == 0:
		return fmt.Sprintf("the manager has not reported on the phases of revision %d yet", s.Revision)
	}
	return fmt.Sprintf("all phases of revision %d are complete, but the manager has not reported that the rollout is", s.Revision)
}

// holding returns the cause that a deletion waits for.
func (s State) holding() Cause {
	if s.Held != "" {
		return ending(Cause{Text: "it is held: " + oneLine(s.Held)})
	}
	if s.Away != "" {
		return Cause{Text: "its target is not connected, so its objects there cannot be removed", Details: []string{s.Away}, Remedy: s.AwayRemedy}
	}
	if len(s.Blocking) > 0 {
		return s.blocked("cannot be torn down yet because of")
	}

	if problem := cmp.Or(s.Stalled, s.Retrying); problem != "" {
		return ending(Cause{Text: "its objects cannot be removed", Details: []string{oneLine(problem)}})
	}
	if len(s.Finalizers) > 0 {
		return Cause{Text: "it is held by the finalizer " + strings.Join(s.Finalizers, ", ") + ", which is not the engine's: the controller that set it has to remove it"}
	}
	if !s.Observed {
		return Cause{Text: "no manager has noticed the deletion", Remedy: managerRunning}
	}

	if ph, ok := s.unfinished(); ok {
		return Cause{Text: fmt.Sprintf("phase %s is being torn down, %s objects are removed", ph.Name, ph.Count()), Remedy: managerRunning}
	}
	return Cause{Text: "the manager has not finished it", Remedy: managerRunning}
}

// managerRunning is the remedy if no manager seems to run.
const managerRunning = "Is lockstep-manager running? See: kubectl -n " + corev1alpha1.DefaultNamespace + " get deployment,pods"

// unfinished returns the first phase that is not done, in the order of the rollout or of the
// teardown.
func (s State) unfinished() (Phase, bool) {
	for _, ph := range s.inOrder() {
		if !ph.Finished() {
			return ph, true
		}
	}
	return Phase{}, false
}

// blocked returns the cause of blocking objects. Only the first phase counts, because the others
// wait for it.
func (s State) blocked(verb string) Cause {
	c := Cause{Blocked: true, Phase: s.Blocking[0].Phase, Remedy: s.Blocking[0].Remedy}
	for _, remark := range remarks(s.Blocking, func(b Object) bool { return b.Phase == c.Phase }) {
		c.Details = append(c.Details, remark.String())
	}

	c.Text = fmt.Sprintf("phase %s %s", c.Phase, verb)
	if c.Phase == "" {
		c.Text = "it " + verb
	}
	if len(c.Details) >= corev1alpha1.MaxBlockingObjects { // otherwise each message is listed, and its objects are counted
		c.Text += ", among others"
	}

	return c
}

// remarks groups the messages of some blocking objects.
func remarks(blocking []Object, which func(Object) bool) []objects.GroupedMessage {
	var notes []objects.Message
	for _, b := range blocking {
		if which(b) {
			notes = append(notes, objects.Message{Object: b.Name, Text: oneLine(b.Message), More: b.More})
		}
	}
	return objects.GroupMessages(notes)
}

// lines returns the lines of a message, without empty ones at the ends.
func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

// listed returns a text with items below it. Empty items are left out.
func listed(head string, items []string) string {
	var b strings.Builder
	b.WriteString(head + ":")
	for _, item := range items {
		if item = oneLine(item); item != "" {
			b.WriteString("\n  " + item)
		}
	}
	return b.String()
}
