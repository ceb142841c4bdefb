package repositories

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/catalog/fetch"
	"lockstep.run/lockstep/internal/inputs/imageconfigs"
	"lockstep.run/lockstep/internal/kube/conditions"
	"lockstep.run/lockstep/internal/kube/queueing"
	"lockstep.run/lockstep/internal/kube/quota"
	"lockstep.run/lockstep/internal/limits"
)

const (
	repositoryStatusBytes  = 512 // of one problem in the status of a repository
	repositoryStatusNumber = 10  // of problems and conflicts in it
)

// statusOf returns the status of a view. Parts that this process does not know yet stay as they
// are.
func statusOf(v view) *corev1alpha1.PackageRepositoryStatus {
	status, spec, generation := v.repository.RepositoryStatus().DeepCopy(), v.repository.RepositorySpec(), v.repository.GetGeneration()
	conds := &status.Conditions
	reportPaused(conds, generation, spec.Paused, v.withheld)
	reportConflicts(conds, generation, v.conflicts)
	if v.published != nil {
		reportContent(status, v.published)
	}
	if v.withheld {
		status.Artifact, status.Packages, status.Versions, status.Problems = nil, 0, 0, nil
	}

	reportVerified(status, v)
	switch v.step {
	case stepPublish, stepBackOff:
		status.LastHandledRetry = v.attempt.RetryValue
	case stepRest:
		status.LastHandledRetry = v.last.retryValue
	}

	if state, ok := stateOf(v, status); ok {
		conditions.Kstatus(conds, generation, state)
		status.ObservedGeneration = generation
	}

	return status
}

func (v view) fetching() bool { return v.step == stepFetch || v.step == stepWait }

// reportPaused sets the condition Paused.
func reportPaused(conds *[]metav1.Condition, generation int64, paused, withheld bool) {
	if !paused {
		conditions.Remove(conds, corev1alpha1.ConditionPaused)
		return
	}
	message := "Nothing is fetched while the repository is paused."
	if !withheld {
		message += " The fetched content stays offered."
	}
	conditions.Set(conds, generation, corev1alpha1.ConditionPaused, true, corev1alpha1.ReasonPaused, message)
}

// reportConflicts sets the condition Conflicting; nil means that the conflicts are not known.
func reportConflicts(conds *[]metav1.Condition, generation int64, conflicts []string) {
	switch c := meta.FindStatusCondition(*conds, corev1alpha1.ConditionConflicting); {
	case conflicts == nil && c != nil:
		c.ObservedGeneration = generation // as an earlier process found it
	case len(conflicts) == 0:
		conditions.Remove(conds, corev1alpha1.ConditionConflicting)
	default:
		conditions.Set(conds, generation, corev1alpha1.ConditionConflicting, true, corev1alpha1.ReasonVersionConflict,
			strings.Join(first(conflicts, "… and %d more conflicts"), "\n"))
	}
}

// reportContent reports published content.
func reportContent(status *corev1alpha1.PackageRepositoryStatus, r *result) {
	status.Artifact = &corev1alpha1.RepositoryArtifact{
		Digest: r.digest, Revision: conditions.Cut(conditions.Message(r.revision), repositoryStatusBytes), Validator: r.validator,
		OffersDigest: r.content.offers.String(),
	}
	if len(r.validator) > limits.RepositoryValidator {
		status.Artifact.Validator = "" // a restart fetches it in whole
	}
	status.Packages, status.Versions = int32(len(r.content.packages)), int32(r.content.versions) //nolint:gosec // bounded by limits
	status.Problems = first(r.content.problems, "… and %d more problems")
}

// first returns the first texts, each cut, and the number of further ones.
func first(texts []string, more string) []string {
	var kept []string
	for i, text := range texts {
		if i == repositoryStatusNumber-1 && len(texts) > repositoryStatusNumber {
			return append(kept, fmt.Sprintf(more, len(texts)-i))
		}
		kept = append(kept, conditions.Cut(conditions.Message(text), repositoryStatusBytes))
	}
	return kept
}

// stateOf returns the state of a repository; ok is false if the status stays as it is.
func stateOf(v view, status *corev1alpha1.PackageRepositoryStatus) (state conditions.State, ok bool) {
	spec, current := v.repository.RepositorySpec(), status.ObservedGeneration == v.repository.GetGeneration()
	switch {
	case v.writeErr != nil && queueing.Raced(v.writeErr):
		return state, false
	case v.writeErr != nil:
		return conditions.State{Reason: corev1alpha1.ReasonApplyError, Message: v.writeErr.Error()}, true
	case v.step == stepPublish, v.step == stepRest:
		return conditions.State{Ready: true, Reason: corev1alpha1.ReasonFetched, Message: offered(status)}, true
	case v.step == stepBackOff:
		return failure(v, status), true
	case v.step == stepPaused && (v.last == nil || !v.last.covers(v.input)):
		return conditions.State{
			Reason: corev1alpha1.ReasonPaused, Message: withOffered(v, "The repository is paused; this source is fetched when it is resumed.", status),
		}, true
	case v.step == stepPaused:
		return conditions.State{Ready: true, Reason: corev1alpha1.ReasonFetched, Message: offered(status)}, true
	case v.step == stepGather:
		return conditions.State{Reason: corev1alpha1.ReasonProgressing, Message: withOffered(v, v.inputError, status)}, v.inputError != ""
	case current && status.ObservedGeneration > 0, v.last != nil && v.last.input.source == v.input.source:
		return state, false // as before, until the fetch has ended
	}

	return conditions.State{
		Reason: corev1alpha1.ReasonProgressing, Message: withOffered(v, "Fetching "+describe(&spec.Source)+".", status),
	}, true
}

// failure returns the state of a repository that could not be fetched or read.
func failure(v view, status *corev1alpha1.PackageRepositoryStatus) conditions.State {
	err := v.attempt.Err
	var invalid *contentError
	if errors.As(err, &invalid) {
		return conditions.State{Stalled: true, Reason: corev1alpha1.ReasonContentInvalid, Message: withOffered(v, err.Error(), status)}
	}

	if state, refused := imageconfigs.NotVerified(err); refused {
		state.Message = withOffered(v, state.Message, status)
		return state
	}

	var exceeded *quota.Exceeded
	if errors.As(err, &exceeded) {
		return conditions.State{Reason: corev1alpha1.ReasonMemoryExceeded, Message: withOffered(v, err.Error()+".", status)}
	}

	var failed *fetch.Error
	permanent := errors.As(err, &failed) && failed.Permanent
	return conditions.State{Stalled: permanent, Reason: corev1alpha1.ReasonFetchFailed, Message: withOffered(v, err.Error(), status)}
}

// offered describes the offers of a repository.
func offered(status *corev1alpha1.PackageRepositoryStatus) string {
	message := fmt.Sprintf("Offers %s in %s of %s.", plural(int(status.Packages), "package"), plural(int(status.Versions), "version"), revision(status))
	if n := len(status.Problems); n > 0 {
		message += " Some of the content cannot be offered, see status.problems."
	}
	return message
}

// withOffered adds the content that stays offered to a message.
func withOffered(v view, message string, status *corev1alpha1.PackageRepositoryStatus) string {
	if status.Artifact == nil && !v.withheld {
		return message
	}

	const room = 256
	message = conditions.Cut(conditions.Message(message), limits.MessageBytes-room)
	if v.withheld {
		return message + "\nThe content fetched before is no longer offered because it is not verified as the ImageConfigs require; installed packages stay."
	}

	rest := "."
	if v.last != nil && v.last.incomplete {
		rest = "; some of it might be missing, or from another revision."
	}
	return fmt.Sprintf("%s\nThe content of %s, fetched before, stays offered%s", message, revision(status), rest)
}

// revision names the fetched content in messages.
func revision(status *corev1alpha1.PackageRepositoryStatus) string {
	if status.Artifact == nil {
		return "an unknown revision"
	}
	if status.Artifact.Revision == "" {
		return status.Artifact.Digest
	}
	return conditions.Cut("revision "+status.Artifact.Revision, 200)
}

// plural returns a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
