package apply

import (
	"strings"
	"testing"
)

func TestWithoutDumps(t *testing.T) {
	t.Parallel()
	template := `{"labels":{"a":"x: y"},"spec":"` + strings.Repeat("z", 300) + `"}`
	for text, want := range map[string]string{
		"spec.template: Invalid value: " + template + ": field is immutable":                    "spec.template: field is immutable",
		"[a: Invalid value: " + template + ": no, b: Invalid value: " + template + ": neither]": "[a: no, b: neither]",
		`spec.x: Invalid value: "short": must be a DNS label`:                                   `spec.x: Invalid value: "short": must be a DNS label`,
		"spec.x: Invalid value: 7: must be less":                                                "spec.x: Invalid value: 7: must be less",
		"spec.x: Invalid value: " + template:                                                    "spec.x: Invalid value: " + template,
		"spec.x: Invalid value: core.Template{Labels:" + template + "}: field is immutable":     "spec.x: Invalid value: core.Template{Labels:" + template + "}: field is immutable",
		"Invalid value: " + template[:200]:                                                      "Invalid value: " + template[:200],
		"an unrelated message":                                                                  "an unrelated message",
	} {
		if got := WithoutDumps(text); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
