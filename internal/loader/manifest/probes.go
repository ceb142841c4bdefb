package manifest

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "lockstep.run/lockstep/apis/core/v1alpha1"
	"lockstep.run/lockstep/internal/loader/violation"
)

// probes checks the form of probes. Package probes compiles them, and checks their selectors and
// expressions.
func (c *checker) probes(probes []corev1alpha1.ObjectSetProbe) {
	for i := range probes {
		field := fmt.Sprintf("spec.availabilityProbes[%d]", i)
		if len(probes[i].Probes) == 0 {
			c.invalid(field+".probes", "List at least one probe.", "Required value")
		}
		for j := range probes[i].Probes {
			c.probe(fmt.Sprintf("%s.probes[%d]", field, j), &probes[i].Probes[j])
		}
	}
}

// probe requires exactly one kind of probe. Package Operator evaluates one of several, and skips an
// empty entry.
func (c *checker) probe(field string, p *corev1alpha1.Probe) {
	set := 0
	if p.Condition != nil {
		set++
		c.required(field+".condition.type", p.Condition.Type)
		p.Condition.Status = cmp.Or(p.Condition.Status, string(metav1.ConditionTrue))
	}

	if p.FieldsEqual != nil {
		set++
	}

	if p.CEL != nil {
		set++
		if c.r.Strict && p.CEL.Message == "" {
			c.invalid(field+".cel.message", "", "Required value")
		}
	}

	if set == 1 {
		return
	}

	v := c.r.At(violation.ReasonProbeInvalid, field).Because("Write one entry for each.", "%d of condition, fieldsEqual and cel are set; exactly one is needed", set)
	if set > 1 {
		v.Details += ", and fieldsEqual wins over condition, and condition over cel"
	}

	c.problems = append(c.problems, c.r.Doubtful(v)...)
}
