#!/bin/sh
# Written by "bawn init", which also takes it away ("bawn init --undo").
# Changes made here are lost. It lets Bawn decide; to Cline no exit code is a
# no, so where no answer comes, the words for one are written here.
answer=$(@BAWN@ hook @AGENT@@FLAGS@) && [ -n "$answer" ] ||
	answer='{"cancel":true,"errorMessage":"bawn hook gave no answer, so this is denied"}'
printf '%s\n' "$answer"
