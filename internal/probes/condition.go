package probes

import "fmt"

// conditionProbe is True if the object reports a condition for its current generation.
type conditionProbe struct{ conditionType, status string }

func (p conditionProbe) evaluate(o *object) outcome {
	value, found := lookup(o.root, "status", "conditions")
	if !found || value == nil { // a new CustomResourceDefinition has null there
		return outcome{message: "missing .status.conditions"}
	}
	list, isList := value.([]any)
	if !isList {
		return outcome{message: "malformed .status.conditions"}
	}
	for _, element := range list {
		condition, isMap := element.(map[string]any)
		if !isMap {
			return outcome{message: "malformed .status.conditions"}
		}
		if condition["type"] == p.conditionType {
			return p.check(condition, o.generation)
		}
	}
	return outcome{message: fmt.Sprintf(`missing .status.condition[%q]`, p.conditionType)}
}

// check evaluates the first condition of the type; later ones do not count.
func (p conditionProbe) check(condition map[string]any, generation int64) outcome {
	if observed, isInteger := condition["observedGeneration"].(int64); isInteger && observed != generation {
		return outcome{message: fmt.Sprintf(`.status.condition[%q] outdated`, p.conditionType), outdated: true}
	}
	if condition["status"] == p.status {
		return outcome{status: True}
	}
	actual := quoted(fmt.Sprint(condition["status"]))
	return outcome{
		status:    False,
		message:   fmt.Sprintf(`.status.condition[%q] is %s`, p.conditionType, actual),
		condition: true,
	}
}
