package main

import "regexp"

// A phrase is a turn to avoid, with the words to write instead.
type phrase struct {
	name    string
	pattern *regexp.Regexp
	except  *regexp.Regexp // matches the whole sentence part around a correct use; nil if there is none
	instead string
}

// phrases are matched one by one against text whose line breaks are spaces.
var phrases = []phrase{
	{
		name:    "what is",
		pattern: regexp.MustCompile(`\b[Ww]hat (?:is|are|was|were|has|have|had|it|they|its|their|nobody|others?) `),
		except:  regexp.MustCompile(`[Ww]hat [^.;:]*\?`),
		instead: "name the thing: the installed objects, the remaining ones",
	},
	{
		name:    "where it",
		pattern: regexp.MustCompile(`\b[Ww]here (?:there|it|that|none|nothing|no) `),
		instead: "if",
	},
	{
		name:    "that of",
		pattern: regexp.MustCompile(`\b(?:[Tt]hat|[Tt]hose) of\b`),
		instead: "a possessive: the manager's, other tenants'",
	},
	{
		name:    "is none",
		pattern: regexp.MustCompile(`\b(?:is|are|was|were) (?:none|nobody|somebody)\b`),
		except:  regexp.MustCompile(`\b[Tt]here (?:is|are|was|were) none\b`),
		instead: "is not a …; if there is none",
	},
	{
		name:    "is no",
		pattern: regexp.MustCompile(`\b(?:is|are|was|were) no \w`),
		except:  regexp.MustCompile(`\b(?:[Tt]here (?:is|are|was|were) no|(?:is|are|was|were) no (?:longer|more|less|other))\b`),
		instead: "is not a …",
	},
	{
		name:    "stands for",
		pattern: regexp.MustCompile(`\b(?:stands?|stood|standing) for\b`),
		instead: "means, represents",
	},
	{
		name:    "begin",
		pattern: regexp.MustCompile(`\b(?:[Bb]egins?|began|begun|[Bb]eginning)\b`),
		instead: "start",
	},
	{
		name:    "is gone",
		pattern: regexp.MustCompile(`\b(?:(?:is|are|was|were|be|been|has|have|had) gone|lets? go of|be let go|is let go)\b`),
		instead: "is removed, no longer exists, is released",
	},
	{
		name:    "nobody",
		pattern: regexp.MustCompile(`\b(?:[Nn]obody|[Ss]omebody|[Ww]hoever)\b`),
		instead: "name them: no caller, another client, the user",
	},
	{
		name:    "of which",
		pattern: regexp.MustCompile(`\b[Oo]f which\b`),
		instead: "split the sentence",
	},
	{
		name:    "Of X",
		pattern: regexp.MustCompile(`(?:^|[.:] )Of [a-z]`),
		except:  regexp.MustCompile(`^Of (?:returns|reports|is)\b`), // a function's name
		instead: "start with the subject",
	},
	{
		name:    "beside",
		pattern: regexp.MustCompile(`\b[Bb]eside\b`),
		instead: "besides, along with, next to",
	},
	{
		name:    "asks for",
		pattern: regexp.MustCompile(`\b(?:tells|says|asks for)\b`),
		instead: "reports, states, requires",
	},
}

// find calls report for each phrase in text.
func find(text string, report func(p phrase, at int)) {
	for _, p := range phrases {
		for _, match := range p.pattern.FindAllStringIndex(text, -1) {
			if p.except != nil && covers(p.except, text, match) {
				continue
			}
			report(p, match[0])
		}
	}
}

// covers reports whether a correct use, as except matches it, lies around the match.
func covers(except *regexp.Regexp, text string, match []int) bool {
	for _, use := range except.FindAllStringIndex(text, -1) {
		if use[0] <= match[0] && match[0] < use[1] {
			return true
		}
	}
	return false
}
