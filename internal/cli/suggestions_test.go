package cli_test

import (
	"strings"
	"testing"

	"lockstep.run/lockstep/test/clitest"
)

func TestWordsOfOtherTools(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"search shop":                               "Did you mean kubectl package available?",
		"-n shop search shop":                       "Did you mean kubectl package available?",
		"history shop -n shop":                      "Did you mean kubectl package rollout?",
		"rollback shop 1 -n shop":                   "Did you mean kubectl package rollout?",
		"installed list -A":                         " or list?",
		"get shop":                                  " or status?",
		"template shop":                             "Did you mean kubectl package render?",
		"diff shop -n shop":                         "Did you mean kubectl package plan?",
		"repo kick stable -n shop":                  "Did you mean kubectl package repo update?",
		"repository add stable https://example.com": "kubectl package repo add NAME IMAGE, or --http URL",
		"repository add stable":                     "kubectl package repo add NAME IMAGE, or --http URL",
		"repository add stable --url example.com/r": "kubectl package repo add NAME IMAGE, or --http URL",
		"repository add stable example.com/r -n a":  "kubectl package repo add NAME IMAGE, or --http URL",
		"repository list -n shop":                   `unknown command "list". See: kubectl package repository --help`,
		"instal shop":                               `unknown command "instal". Did you mean kubectl package install? See: kubectl package --help`,
		"-n shop instal shop":                       "Did you mean kubectl package install?",
		"rollout histroy shop":                      "Did you mean kubectl package rollout history?",
		"bogus":                                     `arguments invalid: unknown command "bogus". See: kubectl package --help`,
		"repo bogus -n shop":                        `unknown command "bogus". See: kubectl package repo --help`,
	} {
		got := clitest.Invoke(t, "", strings.Fields(line)...)
		if got.Code != 1 || !strings.Contains(got.Err, want) || strings.Contains(got.Err, "unknown shorthand") || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%s: %+v, want %s", line, got, want)
		}
	}
	for _, line := range []string{"help", "help install", "completion bash", "__complete install", "--help", "repository --help", "uninstall --help", "-h"} {
		if got := clitest.Invoke(t, "", strings.Fields(line)...); got.Code != 0 {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
