package render

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"lockstep.run/lockstep/internal/limits"
	"lockstep.run/lockstep/internal/limits/regexcost"
)

// passing are functions that neither walk nor build values, so they need not be measured.
var passing = sets.New(strings.Fields(`
default empty coalesce all any ternary get hasKey typeOf typeIs typeIsLike kindOf kindIs include first last mustFirst
mustLast dig fail cel getFile
`)...)

// wrap returns fn as a step that is checked in advance, and whose arguments and result are
// measured.
func (r *renderer) wrap(name string, fn any) any {
	f := reflect.ValueOf(fn)
	t := f.Type()
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}

	errorType := reflect.TypeFor[error]()
	wrapped := reflect.FuncOf(in, []reflect.Type{t.Out(0), errorType}, t.IsVariadic())
	check, measured := checks[name], !passing.Has(name)
	fail := func(err error) []reflect.Value {
		return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(&err).Elem()}
	}

	return reflect.MakeFunc(wrapped, func(args []reflect.Value) []reflect.Value {
		err := r.step()
		for i := 0; measured && i < len(args) && err == nil; i++ {
			err = r.measure(args[i])
		}
		if check != nil && err == nil {
			err = check(args)
		}
		if err != nil {
			return fail(err)
		}
		var out []reflect.Value
		if t.IsVariadic() {
			out = f.CallSlice(args)
		} else {
			out = f.Call(args)
		}
		if len(out) > 1 && !out[1].IsNil() {
			return []reflect.Value{reflect.Zero(t.Out(0)), out[1]}
		}
		if measured || t.Out(0).Kind() == reflect.String {
			if err := r.measure(out[0]); err != nil {
				return fail(err)
			}
		}
		return []reflect.Value{out[0], reflect.Zero(errorType)}
	}).Interface()
}

// measure bounds one value, and the sum of all.
func (r *renderer) measure(v reflect.Value) error {
	n, err := measure(v)
	if r.work += int64(n); err == nil && r.work > limits.TemplateWorkBytes {
		err = limitf("the templates of the package read and make more than %d bytes", int64(limits.TemplateWorkBytes))
	}
	return err
}

// step counts a call or an iteration, and ends the rendering with its context. Templates have no
// other place to stop them.
func (r *renderer) step() error {
	r.steps++
	if r.steps > limits.TemplateSteps {
		return limitf("the templates of the package take more than %d steps", limits.TemplateSteps)
	}
	// One step can take a second, for example with a regular expression.
	if r.ctx.Err() != nil {
		return r.interrupted()
	}
	return nil
}

// interrupted returns why the context ended: the limit on time, or the caller's cause.
func (r *renderer) interrupted() error {
	err := context.Cause(r.ctx)
	if errors.Is(err, errRenderTime) {
		if r.alone {
			return limitf("the template takes longer than %v", limits.ObjectTemplateTime)
		}
		return limitf("the templates of the package take longer than %v", limits.RenderTime)
	}
	return err
}

// enter is called at the start of each template, to bound recursion.
func (r *renderer) enter() (string, error) {
	if r.depth++; r.depth > limits.TemplateDepth {
		return "", limitf("templates nest deeper than %d levels", limits.TemplateDepth)
	}
	return "", r.step()
}

// leave is called at the end of each template. An error ends the whole rendering, so a missed call
// does not matter.
func (r *renderer) leave() string {
	r.depth--
	return ""
}

// out measures a value before it is printed. The size of a text is its length.
func (r *renderer) out(v any) (any, error) {
	if text, ok := v.(string); ok {
		r.work += int64(len(text))
		return v, nil
	}
	return v, r.measure(reflect.ValueOf(v))
}

// checks reject calls whose result would be much larger than their arguments.
var checks = map[string]func(args []reflect.Value) error{
	"repeat":  func(a []reflect.Value) error { return product(a[0].Int(), int64(a[1].Len())) },
	"indent":  indent,
	"nindent": indent,
	"replace": func(a []reflect.Value) error {
		return product(int64(strings.Count(a[2].String(), a[0].String())), int64(a[1].Len()))
	},
	"wrap":     func(a []reflect.Value) error { return wrapping(a[0].Int(), 1, a[1].Len()) },
	"wrapWith": func(a []reflect.Value) error { return wrapping(a[0].Int(), a[1].Len(), a[2].Len()) },
	"join":     func(a []reflect.Value) error { return product(int64(listLen(a[1])), int64(a[0].Len())) },

	"until":       func(a []reflect.Value) error { return items(a[0].Int()) },
	"untilStep":   func(a []reflect.Value) error { return steps(a[0].Int(), a[1].Int(), a[2].Int()) },
	"seq":         seq,
	"splitList":   func(a []reflect.Value) error { return parts(a[1], a[0]) },
	"split":       func(a []reflect.Value) error { return parts(a[1], a[0]) },
	"splitn":      func(a []reflect.Value) error { return parts(a[2], a[0]) },
	"uniq":        func(a []reflect.Value) error { return compared(a[0], listLen(a[0])) },
	"mustUniq":    func(a []reflect.Value) error { return compared(a[0], listLen(a[0])) },
	"without":     func(a []reflect.Value) error { return compared(a[0], a[1].Len()) },
	"mustWithout": func(a []reflect.Value) error { return compared(a[0], a[1].Len()) },

	"printf":           format,
	"print":            noPointers,
	"println":          noPointers,
	"fromJson":         parsed,
	"mustFromJson":     parsed,
	"toYAML":           indented,
	"toPrettyJson":     indented,
	"mustToPrettyJson": indented,
	"semver":           short,
	"semverCompare":    short,
}

func init() {
	for name, at := range map[string][2]int{
		"regexMatch": {0, 1}, "regexFindAll": {0, 1}, "regexFind": {0, 1}, "regexReplaceAll": {0, 1},
		"regexReplaceAllLiteral": {0, 1}, "regexSplit": {0, 1},
	} {
		check := func(a []reflect.Value) error {
			err := regexcost.Check(a[at[0]].String(), a[at[1]].Len())
			if limit, ok := errors.AsType[*regexcost.LimitError](err); ok {
				return &limitError{limit.Error()}
			}
			if err != nil {
				return err
			}
			if strings.HasPrefix(name, "regexReplaceAll") {
				return replacement(a[1].Len(), a[2].String())
			}
			return items(int64(a[at[1]].Len()) / 10)
		}
		checks[name] = check
		checks["mustR"+strings.TrimPrefix(name, "r")] = check
	}
}

// product bounds a result that has count parts of a length.
func product(count, length int64) error {
	if count > 0 && length > 0 && count > limits.TemplateValueBytes/length {
		return limitf("a value has more than %d bytes", limits.TemplateValueBytes)
	}
	return nil
}

// indent bounds indent and nindent, which repeat the white space for each line.
func indent(a []reflect.Value) error {
	return product(1+int64(strings.Count(a[1].String(), "\n")), a[0].Int())
}

// wrapping bounds wrap: there is at most one separator for each width.
func wrapping(width int64, separator, length int) error {
	return product(int64(length)/max(1, width)+1, int64(separator))
}

// listLen returns the length of a list; other values count as one element.
func listLen(v reflect.Value) int {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		return v.Len()
	}
	return 1
}

// items bounds the number of elements.
func items(n int64) error {
	if n > limits.TemplateItems || n < -limits.TemplateItems {
		return limitf("a list of %d elements; the limit is %d", n, limits.TemplateItems)
	}
	return nil
}

// parts bounds functions that split a text.
func parts(text, separator reflect.Value) error {
	return items(int64(strings.Count(text.String(), separator.String())))
}

// steps bounds sequences, before their numbers are computed.
func steps(start, stop, step int64) error {
	// Beyond this, the counter would overflow and never reach the end.
	const far = 1 << 60
	for _, n := range []int64{start, stop, step} {
		if n > far || n < -far {
			return limitf("a list from %d to %d by %d; the limit of each is 2 to the power of 60", start, stop, step)
		}
	}
	if step == 0 {
		return nil
	}
	return items(int64((float64(stop) - float64(start)) / float64(step)))
}

// seq accepts end, or start and end, or start, step and end.
func seq(args []reflect.Value) error {
	n := args[0]
	switch n.Len() {
	case 1:
		return items(n.Index(0).Int())
	case 2:
		return steps(n.Index(0).Int(), n.Index(1).Int(), 1)
	case 3:
		return steps(n.Index(0).Int(), n.Index(2).Int(), n.Index(1).Int())
	}
	return nil
}

// compared bounds the comparison of each element of a list with a number of values.
func compared(list reflect.Value, with int) error {
	size, err := measure(list)
	if err == nil && with > 0 && size > limits.TemplateCompareBytes/with {
		err = limitf("a list of %d elements to compare with %d values; the limit is %d bytes", listLen(list), with, limits.TemplateCompareBytes)
	}
	return err
}

// indented bounds functions that indent each line of each value.
func indented(args []reflect.Value) error {
	m := meter{lines: true}
	if err := m.add(args[0], 0); err != nil {
		return err
	}
	return product(1, int64(m.indent))
}

// parsed bounds functions that parse JSON, whose values take several times as much memory as the
// text.
func parsed(args []reflect.Value) error {
	if n := args[0].Len(); n > limits.TemplateValueBytes/4 {
		return limitf("a text of %d bytes to parse; the limit is %d", n, limits.TemplateValueBytes/4)
	}
	return nil
}

// short bounds the length of versions and ranges before they are parsed.
func short(args []reflect.Value) error {
	for _, arg := range args {
		if n := arg.Len(); n > limits.TemplatePatternBytes {
			return limitf("a version or range has %d bytes; the limit is %d", n, limits.TemplatePatternBytes)
		}
	}
	return nil
}

// replacement bounds the result of replacing matches. There is at most one match per character, and
// $1 is at most the whole text.
func replacement(text int, with string) error {
	if err := product(int64(strings.Count(with, "$")), int64(text)); err != nil {
		return err
	}
	return product(int64(text)+1, int64(len(with)))
}

var (
	widths  = regexp.MustCompile(`\d{5,}|\*`)
	pointer = regexp.MustCompile(`%[^a-zA-Z%]*p`)
	numbers = regexp.MustCompile(`%[^a-zA-Z%]*`)
)

// format bounds printf: each verb prints at most the largest argument, padded.
func format(args []reflect.Value) error {
	text, values := args[0].String(), args[1]
	if verbs := strings.Count(text, "%"); verbs > 0 {
		if widths.MatchString(text) {
			return limitf("a width or precision in a format is above %d or an argument", limits.TemplatePadding)
		}
		if pointer.MatchString(text) {
			return fmt.Errorf("a format prints an address")
		}
		largest, most := 0, 1
		for i := range values.Len() {
			m := meter{}
			if err := m.add(values.Index(i), 0); err != nil {
				return err
			}
			largest, most = max(largest, m.n), max(most, m.scalars)
		}
		if err := product(int64(verbs), int64(largest+64)); err != nil {
			return err
		}
		if err := product(int64(verbs)*int64(most), padding(text)); err != nil {
			return err
		}
	}

	return noPointers(args[1:])
}

// padding returns the largest width or precision in a format.
func padding(text string) int64 {
	most := 0
	for _, verb := range numbers.FindAllString(text, -1) {
		for _, digits := range strings.FieldsFunc(verb, func(r rune) bool { return r < '0' || r > '9' }) {
			n, _ := strconv.Atoi(digits)
			most = max(most, n)
		}
	}
	return int64(most)
}

// noPointers rejects values that print an address, which differs each time.
func noPointers(args []reflect.Value) error {
	for i := range args[0].Len() {
		v := args[0].Index(i)
		for v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if (v.Kind() == reflect.Slice || v.Kind() == reflect.Map || v.Kind() == reflect.Struct) && hasPointer(v) {
			return fmt.Errorf("a value prints an address")
		}
	}
	return nil
}

// hasPointer reports whether a value contains an address at any depth.
func hasPointer(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface:
		return !v.IsNil() && hasPointer(v.Elem())
	case reflect.Pointer, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return !v.IsNil()
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if hasPointer(it.Value()) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		if k := v.Type().Elem().Kind(); k != reflect.Interface && k != reflect.Pointer && k != reflect.Map && k != reflect.Slice && k != reflect.Struct {
			return false
		}
		for i := range v.Len() {
			if hasPointer(v.Index(i)) {
				return true
			}
		}
	}

	return false
}
