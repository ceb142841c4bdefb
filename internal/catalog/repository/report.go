package repository

import (
	"encoding/json"
	"errors"
	"fmt"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/loader/document"
	"lockstep.run/lockstep/internal/loader/violation"
)

// reporter collects the problems of a document.
type reporter struct {
	doc *document.Document
	// object names the object in messages.
	object   string
	problems violation.Violations
}

// fail adds a problem of the document; limit does so for an exceeded limit.
func (r *reporter) fail(field, remedy, format string, args ...any) {
	r.because(violation.ReasonRepositoryInvalid, field, remedy, format, args...)
}

func (r *reporter) limit(field, remedy, format string, args ...any) {
	r.because(violation.ReasonLimit, field, remedy, format, args...)
}

// because adds a problem at a field, up to the number that is shown.
func (r *reporter) because(reason violation.Reason, field, remedy, format string, args ...any) {
	if len(r.problems) > limits.Violations {
		return
	}
	v := r.doc.At(reason, field).Because(remedy, format, args...)
	v.Object = r.object
	r.problems = append(r.problems, v)
}

// decode decodes the document into a value, ignoring unknown fields.
func (r *reporter) decode(into any) bool {
	raw, err := json.Marshal(r.doc.Value)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		r.fail(wrong.Field, remedyOf(wrong), "cannot unmarshal a %s into %s", wrong.Value, wrong.Type)
	case err != nil:
		r.fail("", "", "%v", err)
	}
	return err == nil
}

// remedyOf returns the remedy for a value of a wrong type.
func remedyOf(wrong *json.UnmarshalTypeError) string {
	if wrong.Type.Kind().String() == "string" && (wrong.Value == "bool" || len(wrong.Value) >= 6 && wrong.Value[:6] == "number") {
		return "Put it in quotes."
	}
	return fmt.Sprintf("Write it as a %s.", wrong.Type.Kind())
}
