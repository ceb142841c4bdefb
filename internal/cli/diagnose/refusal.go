package diagnose

import (
	"lockstep.run/lockstep/internal/objects"
	"lockstep.run/lockstep/internal/phases/refusals"
)

// refused reports whether the message of a blocking object is about a refused write.
func refused(key objects.Key, object, message string) (cause, bool) {
	r, is := refusals.Of(key, object, message)
	return certain(short(key), r), is
}

// certain returns a refusal as a cause that needs no further search.
func certain(object string, r refusals.Refusal) cause {
	return cause{weight: weightCertain, reason: r.Reason, object: object, text: r.Text, remedy: r.Remedy}
}

// short returns a key without its group, for texts.
func short(key objects.Key) string {
	key.Group = ""
	return key.String()
}
