package versions

import (
	"errors"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
)

// Highest returns the tag with the highest version that a selection accepts. It ignores tags that
// are not versions, and one leading v. The error explains why there is none; field is the path of
// the selection in it.
func Highest(selection corev1alpha1.VersionSelection, field string, tags []string) (string, error) {
	candidates := make([]Candidate, len(tags))
	for i, tag := range tags {
		candidates[i].Version = tag
	}
	if len(tags) == 0 {
		return "", errors.New("there are no tags to select from")
	}
	choice := selectFrom(candidates, Request{Selection: selection}, "tag", field)
	if choice.Index < 0 {
		return "", errors.New(choice.Message)
	}
	return tags[choice.Index], nil
}
