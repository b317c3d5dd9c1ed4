#!/bin/bash
# The completion of rmqctl offers verbs, the second words of verbs, and options of the verb that is typed.
# usage: completion.sh RMQCTL COMPLETION-FILE
set -euo pipefail
rmqctl=$1
. "$2"
failed=0

# offers WANTED WORD...: completing the last WORD gives WANTED (blanks between), among others.
offers() {
  local wanted=$1 word
  shift
  COMP_WORDS=("$rmqctl" "$@")
  COMP_CWORD=$#
  _rmqctl
  for word in $wanted; do
    [[ " ${COMPREPLY[*]} " == *" $word "* ]] && continue
    echo "'$*' does not offer $word: ${COMPREPLY[*]}"
    failed=1
  done
}

offers_not() {
  local unwanted=$1
  shift
  COMP_WORDS=("$rmqctl" "$@")
  COMP_CWORD=$#
  _rmqctl
  [[ " ${COMPREPLY[*]} " != *" $unwanted "* ]] || { echo "'$*' offers $unwanted"; failed=1; }
}

offers "send consume topic group --json" ""
offers "send" "se"
offers_not "consume" "se"
offers "list create" topic ""
offers "check dump import-config" store ""
offers_not "send" topic ""
offers "--from --count --json" consume ""
offers "--count" consume Hello --c
offers_not "--batch" consume Hello ""
offers "--follow" --json consume Hello --f
exit "$failed"
