package describe

import (
	"math"
	"regexp/syntax"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	sampleDepth  = 8   // of a value that an example makes up
	sampleLength = 256 // of a text that it makes up
	sampleItems  = 16  // of a list that it makes up
)

// samples of formats, which an API server checks.
var samples = map[string]string{
	"date-time": "2026-01-31T12:00:00Z", "datetime": "2026-01-31T12:00:00Z", "date": "2026-01-31", "duration": "1h",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "cidr": "192.0.2.0/24", "mac": "00:00:5e:00:53:01",
	"uri": "https://example.com", "email": "someone@example.com", "hostname": "example.com",
	"uuid": "00000000-0000-4000-8000-000000000000", "uuid4": "00000000-0000-4000-8000-000000000000",
	"byte": "eA==", "hexcolor": "#000000", "rgbcolor": "rgb(0,0,0)", "isbn": "9783161484100", "isbn10": "316148410X", "isbn13": "9783161484100",
	"creditcard": "4111111111111111", "ssn": "078-05-1120", "bsonobjectid": "000000000000000000000000",
	"uuid3": "00000000-0000-3000-8000-000000000000", "uuid5": "00000000-0000-5000-8000-000000000000",
}

// sample is a value that a schema allows, as far as one can be made without its rules.
func sample(props *apiextensionsv1.JSONSchemaProps, depth int) any {
	switch {
	case props.Default != nil && props.Format != "password":
		return decoded(props.Default.Raw)
	case props.Example != nil && props.Format != "password":
		return decoded(props.Example.Raw)
	case len(props.Enum) > 0:
		return decoded(props.Enum[0].Raw)
	}
	switch props.Type {
	case "integer", "number":
		return number(props)
	case "string":
		return text(props)
	case "boolean":
		return false
	case "array":
		return list(props, depth)
	case "object":
		return object(props, depth)
	}
	if props.XIntOrString {
		return 0
	}
	return map[string]any{}
}

func number(props *apiextensionsv1.JSONSchemaProps) any {
	value := 0.0
	unit := 1.0
	if props.MultipleOf != nil && *props.MultipleOf > 0 {
		unit = *props.MultipleOf
	}
	if low := props.Minimum; low != nil && (*low > 0 || *low == 0 && props.ExclusiveMinimum) {
		value = math.Ceil(*low/unit) * unit
		if props.ExclusiveMinimum && value <= *low {
			value += unit
		}
	} else if high := props.Maximum; high != nil && (*high < 0 || *high == 0 && props.ExclusiveMaximum) {
		value = math.Floor(*high/unit) * unit
		if props.ExclusiveMaximum && value >= *high {
			value -= unit
		}
	}
	if props.Type == "integer" && math.Abs(value) < 1<<53 {
		return int64(value)
	}
	return value
}

func text(props *apiextensionsv1.JSONSchemaProps) string {
	least := 0
	if props.MinLength != nil {
		least = int(min(max(*props.MinLength, 0), sampleLength))
	}
	if known, ok := samples[props.Format]; ok {
		return known
	}
	if props.Pattern == "" {
		return strings.Repeat("x", least)
	}
	tree, err := syntax.Parse(props.Pattern, syntax.Perl)
	if err != nil {
		return strings.Repeat("x", least)
	}
	var found string
	for more := range least + 1 {
		var b strings.Builder
		matching(tree.Simplify(), more, &b)
		if found = b.String(); len([]rune(found)) >= least {
			break
		}
	}
	if lacking := least - len([]rune(found)); lacking > 0 && !strings.HasSuffix(props.Pattern, "$") {
		found += strings.Repeat("x", lacking)
	}
	return found
}

// matching writes a text that an expression matches; repetitions are more than their least where they may be.
func matching(tree *syntax.Regexp, more int, b *strings.Builder) {
	if b.Len() > sampleLength {
		return
	}
	switch tree.Op {
	case syntax.OpLiteral:
		b.WriteString(string(tree.Rune))
	case syntax.OpCharClass:
		b.WriteRune(oneOf(tree.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteRune('x')
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range tree.Sub {
			matching(sub, more, b)
		}
	case syntax.OpAlternate:
		matching(tree.Sub[0], more, b)
	case syntax.OpStar, syntax.OpPlus, syntax.OpRepeat, syntax.OpQuest:
		least, most := repetitions(tree)
		for range min(least+more, most, sampleLength) {
			matching(tree.Sub[0], 0, b)
		}
	}
}

func repetitions(tree *syntax.Regexp) (least, most int) {
	switch tree.Op {
	case syntax.OpPlus:
		return 1, sampleLength
	case syntax.OpQuest:
		return 0, 1
	case syntax.OpRepeat:
		if tree.Max < 0 {
			return tree.Min, sampleLength
		}
		return tree.Min, tree.Max
	}
	return 0, sampleLength
}

// oneOf prefers a letter, then a digit, of pairs of the first and last rune of ranges.
func oneOf(ranges []rune) rune {
	for _, liked := range "xa0A" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= liked && liked <= ranges[i+1] {
				return liked
			}
		}
	}
	if len(ranges) == 0 {
		return 'x'
	}
	return ranges[0]
}

func list(props *apiextensionsv1.JSONSchemaProps, depth int) any {
	items := []any{}
	if props.Items == nil || props.Items.Schema == nil || depth >= sampleDepth {
		return items
	}
	n := 1 // to show what an element is
	if props.MinItems != nil {
		n = max(n, int(min(*props.MinItems, sampleItems)))
	}
	if props.MaxItems != nil && *props.MaxItems == 0 {
		n = 0
	}
	for range n {
		items = append(items, sample(props.Items.Schema, depth+1))
	}
	return items
}

func object(props *apiextensionsv1.JSONSchemaProps, depth int) any {
	fields := map[string]any{}
	if depth >= sampleDepth {
		return fields
	}
	for name, of := range props.Properties {
		if slices.Contains(props.Required, name) || depth > 0 && of.Format != "password" && len(of.XValidations) == 0 {
			fields[name] = sample(&of, depth+1)
		}
	}
	if of := props.AdditionalProperties; of != nil && of.Schema != nil && (props.MinProperties != nil && *props.MinProperties > 0 || depth > 0) {
		fields["example"] = sample(of.Schema, depth+1)
	}
	return fields
}
