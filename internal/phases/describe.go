package phases

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/refusals"
)

// Describe names the phase of the first blocker and the problems of its objects, in the words of
// Package Operator, in one line. Objects with the same message are grouped; those that do not fit
// are counted. The remedy of a refusal follows.
func Describe(blocking []Blocker) string {
	if len(blocking) == 0 {
		return ""
	}

	var messages []objects.Message
	for _, b := range blocking {
		if b.Phase == blocking[0].Phase {
			messages = append(messages, objects.Message{Object: b.Key.String(), Text: b.Message})
		}
	}

	// A long text must not cut off the number of the remaining objects and the remedy behind it.
	room := limits.ConditionRunes / 2
	if blocking[0].Agent {
		room = limits.ConditionRunes
	}

	room -= len(", and 10000 more")
	text, more := fmt.Sprintf("Phase %q failed: ", blocking[0].Phase), 0
	for i, group := range objects.GroupMessages(messages) {
		line := group.Names() + ": " + group.Text
		switch {
		case i == 0:
			text = objects.TruncateTo(text+line, room)
		case more > 0 || utf8.RuneCountInString(text+line) > room:
			more += len(group.Objects)
		default:
			text += ", " + line
		}
	}

	if more > 0 {
		text = fmt.Sprintf("%s, and %d more", text, more)
	}

	if b := blocking[0]; b.Kind == BlockRefused || b.Kind == BlockAPI {
		if remedy := refusals.Remedy(b.Key, b.Message); remedy != "" {
			if !strings.HasSuffix(text, "?") {
				text += "."
			}
			text += " " + remedy
		}
	}

	return text
}

// DescribeDrift names the objects that others changed, and counts them if the list is long.
func DescribeDrift(drifted []Blocker) string {
	parts := make([]string, len(drifted))
	for i, d := range drifted {
		parts[i] = d.Key.String() + " " + d.Message
	}
	return "Left as they are by driftPolicy Report: " + counted(parts) + "."
}

// DescribeCompleted names Jobs that no longer exist after their success, and counts them if the
// list is long. It returns an empty string for an empty list.
func DescribeCompleted(keys []objects.Key) string {
	if len(keys) == 0 {
		return ""
	}
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.String()
	}
	return "Completed earlier: " + counted(names) + "."
}

// DescribeSpared adds a sentence to a message for each object that is released instead of deleted,
// unless the message has it.
func DescribeSpared(message string, spared []Spared) string {
	for _, s := range spared {
		sentence := fmt.Sprintf("%s was released instead of deleted: %s.", s.Key, s.Reason)
		if !strings.Contains(message, sentence) {
			message = strings.TrimLeft(message+" "+sentence, " ")
		}
	}
	return objects.Truncate(message)
}

// DescribeNotes adds a sentence to a message for each note about an object, unless the message has
// it.
func DescribeNotes(message string, notes map[objects.Key]string) string {
	for _, key := range slices.SortedFunc(maps.Keys(notes), objects.Key.Compare) {
		if sentence := fmt.Sprintf("%s: %s.", key, notes[key]); !strings.Contains(message, sentence) {
			message = strings.TrimLeft(message+" "+sentence, " ")
		}
	}
	return objects.Truncate(message)
}

// counted joins the first few parts and counts the others.
func counted(parts []string) string {
	const shown = 5
	if more := len(parts) - shown; more > 0 {
		parts = append(parts[:shown:shown], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}
