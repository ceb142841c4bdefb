package progress

import (
	"cmp"
	"fmt"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/objects"
)

// Culprit is what a rollout or a deletion waits for. It may have several lines.
func Culprit(s State) string {
	switch {
	case s.Lost != "":
		return "the connection to the cluster is lost (" + s.Lost + "), so it is not known how it stands"
	case s.Gone:
		return "it does not exist"
	case s.Deleting:
		return s.holding()
	case s.Paused != "":
		return "it is paused, so nothing is written (" + oneLine(s.Paused) + "). Let it go on: kubectl package unpause " + s.Target.Flags()
	case s.Awaiting != "":
		return oneLine(s.Awaiting)
	case s.Away != "":
		return listed("its target is not connected", []string{s.Away, s.AwayRemedy})
	case s.Invalid != "":
		return listed("the package cannot be installed as it is", strings.Split(s.Invalid, "\n"))
	case s.Unresolved != "":
		return listed("no version can be chosen", strings.Split(s.Unresolved, "\n"))
	case s.NotVerified:
		return oneLine(s.PullError)
	case s.PullError != "":
		return listed("the image cannot be pulled", []string{s.PullError})
	case s.Unsatisfied:
		return listed("what it depends on cannot be had", strings.Split(s.Waiting, "\n"))
	case s.Waiting != "":
		return listed("it waits for what it depends on", strings.Split(s.Waiting, "\n"))
	case !s.Observed:
		return "no manager has looked at it. " + managerRunning
	}
	return s.rollingOut()
}

// rollingOut is what the rollout of a package waits for that can be installed.
func (s State) rollingOut() string {
	switch {
	case !s.Unpacked && s.Stalled == "":
		return "the manager has not pulled the image " + s.Image + " yet"
	case len(s.Blocking) > 0:
		return s.blocked("waits for")
	case s.Stalled != "":
		return listed("the rollout is stuck", []string{s.Stalled})
	case s.Retrying != "":
		return listed("the API server refuses or delays what the manager writes, which is tried again", []string{s.Retrying})
	}
	if ph, ok := s.unfinished(); ok {
		return fmt.Sprintf("phase %s is %s, %s objects are ready", ph.Name, ph.Word(), ph.Count())
	}
	if s.Unavailable != "" {
		return listed("it is not available", []string{s.Unavailable})
	}
	return s.unreported()
}

// Unreported reports whether nothing is known of why a rollout is not complete: the manager has not reported on it.
func Unreported(s State) bool { return Culprit(s) == s.unreported() }

// unreported says how far the manager has come, by what it has written.
func (s State) unreported() string {
	switch {
	case s.Revision == 0:
		return "the image is unpacked, and the manager has not reported on a revision yet"
	case len(s.Phases) == 0:
		return fmt.Sprintf("the manager has not reported on the phases of revision %d yet", s.Revision)
	}
	return fmt.Sprintf("all phases of revision %d are complete, and the manager has not reported that the rollout is", s.Revision)
}

func (s State) holding() string {
	if s.Held != "" {
		return "it is held: " + oneLine(s.Held)
	}
	if s.Away != "" {
		return listed("its target is not connected, so that its objects there cannot be removed", []string{s.Away, s.AwayRemedy})
	}
	if len(s.Blocking) > 0 {
		return s.blocked("cannot be torn down yet because of")
	}
	if problem := cmp.Or(s.Stalled, s.Retrying); problem != "" {
		return listed("its objects cannot be removed", []string{problem})
	}
	if len(s.Finalizers) > 0 {
		return "it is held by the finalizer " + strings.Join(s.Finalizers, ", ") + ", which is not the engine's: whoever set it has to remove it"
	}
	if !s.Observed {
		return "no manager has looked at the deletion. " + managerRunning
	}
	if ph, ok := s.unfinished(); ok {
		return fmt.Sprintf("phase %s is being torn down, %s objects are gone. Is lockstep-manager running?", ph.Name, ph.Count())
	}
	return "the manager has not finished it. " + managerRunning
}

const managerRunning = "Is lockstep-manager running? See: kubectl -n " + corev1alpha1.DefaultNamespace + " get deployment,pods"

func (s State) unfinished() (Phase, bool) {
	for _, ph := range s.inOrder() {
		if !ph.Finished() {
			return ph, true
		}
	}
	return Phase{}, false
}

func (s State) blocked(verb string) string {
	name := s.Blocking[0].Phase
	var items []string
	for _, remark := range remarks(s.Blocking, func(b Object) bool { return b.Phase == name }) {
		items = append(items, remark.String())
	}
	head := fmt.Sprintf("phase %s %s", name, verb)
	if name == "" {
		head = "it " + verb
	}
	if len(items) >= corev1alpha1.MaxBlockingObjects { // else each message is listed, and its objects are counted
		head = head + ", among others"
	}
	return listed(head, items)
}

func remarks(blocking []Object, which func(Object) bool) []objects.GroupedMessage {
	var notes []objects.Message
	for _, b := range blocking {
		if which(b) {
			notes = append(notes, objects.Message{Object: b.Name, Text: oneLine(b.Message), More: b.More})
		}
	}
	return objects.GroupMessages(notes)
}

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
