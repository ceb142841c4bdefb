package objects

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"lockstep.run/lockstep/internal/limits"
)

// Message is a message about an object, such as the reason for a refusal. More is the number of
// other objects with the same message.
type Message struct {
	Object, Text string
	More         int
}

// GroupedMessage is a message and the objects that share it. More is the number of unnamed ones.
type GroupedMessage struct {
	Objects []string
	Text    string
	More    int
}

// GroupMessages groups messages by their text and keeps their order. It strips the request and the
// object that errors start with.
func GroupMessages(messages []Message) []GroupedMessage {
	var groups []GroupedMessage
	at := map[string]int{}
	for _, n := range messages {
		text := n.Common()
		i, known := at[text]
		if !known {
			i = len(groups)
			at[text], groups = i, append(groups, GroupedMessage{Text: text})
		}
		groups[i].Objects, groups[i].More = append(groups[i].Objects, n.Object), groups[i].More+n.More
	}
	return groups
}

// Names lists the first few objects and the number of the others.
func (r GroupedMessage) Names() string {
	shown := min(len(r.Objects), 3)
	names := strings.Join(r.Objects[:shown], ", ")
	if more := len(r.Objects) - shown + r.More; more > 0 {
		return names + fmt.Sprintf(" and %d more", more)
	}
	return names
}

// String returns the group as one line, cut to [limits.LineRunes].
func (r GroupedMessage) String() string { return Truncate(r.Names() + ": " + r.Text) }

// Truncate shortens a text to [limits.LineRunes].
func Truncate(text string) string { return TruncateTo(text, limits.LineRunes) }

// TruncateTo shortens a text to a number of runes.
func TruncateTo(text string, runes int) string {
	if utf8.RuneCountInString(text) <= runes {
		return text
	}
	return string([]rune(text)[:runes-1]) + "…"
}

// requests are the first words of package apply's errors.
var requests = []string{"dry-run apply ", "dry-run create ", "dry-run patch ", "apply ", "create ", "patch ", "delete ", "get "}

// Common returns the text without the request and the object at its start.
func (n Message) Common() string {
	text := strings.TrimSpace(n.Text)
	name := n.Object[strings.LastIndexAny(n.Object, " /")+1:]
	isRequest := func(begin string) bool { return strings.HasPrefix(text, begin) }
	if head, rest, found := strings.Cut(text, ": "); found && strings.HasSuffix(head, name) && slices.ContainsFunc(requests, isRequest) {
		text = rest
	}

	resource, rest, found := strings.Cut(text, fmt.Sprintf(" %q ", name))
	// A namespace often has the same name as an object in it.
	another := resource == "namespaces" && !strings.HasPrefix(n.Object, "Namespace ")
	if found && !strings.Contains(resource, " ") && !another {
		text = rest
	}

	return text
}

// KeepField returns the remedy for an immutable field. It does not suggest deleting an object that
// can hold data.
func (n *Names) KeepField(k Key) string {
	if k.HoldsData() {
		return "Keep the field as it was, or give the object another name."
	}
	return "Keep the field as it was, give the object another name, or annotate it " +
		n.OnImmutableAnnotation + ": " + n.OnImmutableRecreate + "."
}

// KeepsData reports whether deleting an object of the kind destroys data for good: the resources of
// a definition, the objects of a namespace, or the content of a volume.
func (k Key) KeepsData() bool {
	switch k.GroupKind().String() {
	case "Namespace", "PersistentVolumeClaim", "PersistentVolume", "CustomResourceDefinition.apiextensions.k8s.io":
		return true
	}
	return false
}

// HoldsData reports whether deleting the object can destroy data, which is assumed of every custom
// resource.
func (k Key) HoldsData() bool {
	switch k.Group {
	case "":
		return slices.Contains([]string{"Namespace", "PersistentVolumeClaim", "PersistentVolume", "Secret", "ConfigMap"}, k.Kind)
	case "apps":
		return k.Kind == "StatefulSet"
	case "apiextensions.k8s.io":
		return true
	}
	return strings.Contains(k.Group, ".") && !strings.HasSuffix(k.Group, ".k8s.io")
}
