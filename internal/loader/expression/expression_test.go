package expression

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"lockstep.run/lockstep/internal/limits"
)

func TestBool(t *testing.T) {
	t.Parallel()
	e := New(map[string]any{
		"package": map[string]any{"metadata": map[string]any{"name": "shop", "namespace": ""}},
		"config":  map[string]any{"replicas": 2.0, "on": true, "name": "x", "list": make([]any, 1000)},
	})
	with := e.WithConditions(map[string]bool{"yes": true, "no": false})
	deep := strings.Repeat("[1,2,3,4,5,6,7,8,9,10].all(x, ", 12) + "true" + strings.Repeat(")", 12)
	for _, test := range []struct {
		text, want string
	}{
		{"true", "true"}, {"config.replicas > 1", "true"}, {".config.replicas == 3", "false"}, {"config.on", "true"},
		{"has(config.missing)", "false"}, {"'kubernetes' in environment", "false"}, {"package.metadata.name == ''", "reserved identifier: package"},
		{"config.missing", "no such key: missing"}, {"config.name", "the result is a string, not a bool"}, {"1 + 1", "of type int, not bool"},
		{"config.", "column"}, {"unknown", "undeclared reference to 'unknown'"}, {"", "the expression is empty"},
		{strings.Repeat("x", limits.ExpressionBytes+1), fmt.Sprintf("the limit is %d", limits.ExpressionBytes)},
		{deep, "cost limit exceeded"}, {strings.Repeat("(", 5000) + "true" + strings.Repeat(")", 5000), "column"},
	} {
		start := time.Now()
		got, err := e.Bool(context.Background(), test.text)
		if text := fmt.Sprint(got); err != nil && !strings.Contains(err.Error(), test.want) || err == nil && text != test.want {
			t.Errorf("%.60s: %v, %v", test.text, got, err)
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%.60s: took %v", test.text, d)
		}
	}

	if got, err := with.Bool(context.Background(), "cond.yes && !cond.no && config.on"); !got || err != nil {
		t.Error(err)
	}
	if _, err := e.Bool(context.Background(), "cond.yes"); err == nil {
		t.Error("conditions cannot refer to each other")
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Bool(ctx, "config.list.all(x, config.list.all(y, x == y))"); err == nil {
		t.Error("the context is ignored")
	}
}

// CEL counts the cost of a call after running it, and does not know the size of list elements.
// Without the check, none of these would end.
func TestExpressionsThatGrow(t *testing.T) {
	t.Parallel()
	double := "[[0]]" + strings.Repeat(".map(y, y + y)", 15) + "[0]"
	nest := "[0]" + strings.Repeat(".map(y, [y, y, y])", 15)
	maps := "[{'a': 0}]" + strings.Repeat(".map(y, {'a': y, 'b': y})", 16)
	copies := "[[0]]" + strings.Repeat(".map(y, [1, 2, 3, 4, 5, 6, 7, 8].map(z, y))", 8)
	for _, text := range []string{
		"1 in " + double, double + " == " + double, "dyn([1]) in dyn(" + nest + ")", nest + " == " + nest, maps + " == " + maps, copies + " == " + copies,
		"dyn(" + double + ").exists(x, x == 1)", "{'a': " + nest + "} != {'a': " + nest + "}",
	} {
		_, err := New(nil).Bool(context.Background(), text)
		if want := fmt.Sprintf("more than %d values", limits.ExpressionValues); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v", text, err)
		}
	}

	for _, text := range []string{
		"[0]" + strings.Repeat(".map(y, [y])", 100) + " == []", "[" + strings.Repeat("[", 200) + "0" + strings.Repeat("]", 200) + "] == []",
		"{'a': " + strings.Repeat("{'a': ", 100) + "0" + strings.Repeat("}", 100) + "} == {}",
	} {
		if _, err := New(nil).Bool(context.Background(), text); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("more than %d macros", limits.ExpressionMacros)) && !strings.Contains(err.Error(), fmt.Sprintf("deeper than %d levels", limits.ExpressionNesting)) {
			t.Errorf("%.80s: %v", text, err)
		}
	}

	// There are many small lists.
	e := New(map[string]any{"config": map[string]any{"list": make([]any, 10_000)}})
	_, err := e.Bool(context.Background(), "config.list.all(x, [config.list, x].size() == 2)")
	if want := fmt.Sprintf("more than %d values", limits.ExpressionWork); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}

	ordinary := New(map[string]any{"config": map[string]any{"list": make([]any, 1000)}})
	if got, err := ordinary.Bool(context.Background(), "config.list.map(x, {'a': [x, 1]}).filter(x, x.a[1] == 1).size() == 1000 && [config.list] == [config.list]"); !got || err != nil {
		t.Error(got, err)
	}
}
