package loader

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
	"lockstep.run/lockstep/internal/objects/spelling"
)

// phase reads the phase and its class. A misspelt annotation and an unknown phase get a suggestion.
func (c *check) phase(annotations map[string]any) {
	field := annotationField(corev1alpha1.PhaseAnnotation)
	phase, _ := annotations[corev1alpha1.PhaseAnnotation].(string)
	if phase == "" {
		remedy := "Set it to a phase of the manifest."
		if near, ok := spelling.Nearest(corev1alpha1.PhaseAnnotation, sortedKeys(annotations)); ok && near != corev1alpha1.PhaseAnnotation {
			remedy = "Write it instead of " + near + "."
		}
		c.fail(violation.ReasonMissingPhase, "", remedy, "the object is in no phase")
		return
	}

	// It is nil if the manifest itself is wrong. Each object would repeat that error.
	if c.r.phases != nil && !slices.Contains(c.r.phases, phase) {
		listed := "Add it to the manifest, which names no phases."
		if len(c.r.phases) > 0 {
			listed = "The manifest has: " + violation.Listed(c.r.phases) + "."
		}
		c.fail(violation.ReasonUnknownPhase, field, violation.Suggest(phase, c.r.phases, listed), "phase %q", phase)
	}

	c.out.phase, c.out.class = phase, c.r.classes[phase]
}

// collisionModes are the values of the annotation and of spec.collisionProtection, in the order of
// messages.
var collisionModes = []string{
	string(corev1alpha1.CollisionProtectionPrevent), string(corev1alpha1.CollisionProtectionIfNoController), string(corev1alpha1.CollisionProtectionNone),
}

// collisionProtection reads the annotation; its default is the Package's mode, or else Prevent.
func (c *check) collisionProtection(annotations map[string]any) {
	c.out.stored.CollisionProtection = cmp.Or(c.r.opts.CollisionProtection, corev1alpha1.CollisionProtectionPrevent)
	mode, _ := annotations[corev1alpha1.CollisionProtectionAnnotation].(string)
	if mode == "" {
		return
	}
	if remedy, ok := checkCollisionMode(mode); !ok {
		// Package Operator treats it as Prevent.
		c.out.stored.CollisionProtection = corev1alpha1.CollisionProtectionPrevent
		c.doubtful(violation.ReasonAnnotationInvalid, annotationField(corev1alpha1.CollisionProtectionAnnotation), remedy, "%q is not a valid mode", mode)
		return
	}
	c.out.stored.CollisionProtection = corev1alpha1.CollisionProtection(mode)
}

// checkCollisionMode reports whether a mode exists, with a remedy if not.
func checkCollisionMode(mode string) (remedy string, ok bool) {
	if slices.Contains(collisionModes, mode) {
		return "", true
	}
	return violation.Suggest(mode, collisionModes, "Supported: "+strings.Join(collisionModes, ", ")+"."), false
}

// destinationPart is the pattern in the API. The API matches it against part of the text, but a
// condition type has to match as a whole.
const destinationPart = `[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`

var (
	destinationType  = regexp.MustCompile(`^` + destinationPart + `$`)
	holdsDestination = regexp.MustCompile(destinationPart)
)

// conditionMappings reads the annotation with one mapping a line, in the form "Available =>
// example.com/Available".
func (c *check) conditionMappings(annotations map[string]any) {
	text, _ := annotations[corev1alpha1.ConditionMapAnnotation].(string)
	field := annotationField(corev1alpha1.ConditionMapAnnotation)
	const remedy = "Write it as example.com/Available."
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		source, destination, ok := strings.Cut(line, "=>")
		source, destination = strings.TrimSpace(source), strings.TrimSpace(destination)
		switch {
		case !ok || source == "" || destination == "":
			c.fail(violation.ReasonAnnotationInvalid, field, `Write one mapping a line: Available => example.com/Available`, "%q is not a mapping", strings.TrimSpace(line))
		case !holdsDestination.MatchString(destination):
			c.fail(violation.ReasonAnnotationInvalid, field, remedy, "%q is not a valid type for a mapped condition", destination)
		case !destinationType.MatchString(destination) || len(destination) > 316:
			// The API server would refuse a status with it.
			c.dropped(violation.ReasonAnnotationInvalid, field, remedy, "%q is not a valid type for a mapped condition", destination)
		default:
			c.out.stored.ConditionMappings = append(c.out.stored.ConditionMappings, corev1alpha1.ConditionMapping{SourceType: source, DestinationType: destination})
		}
	}
}
