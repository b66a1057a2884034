/// SQL around an edit of a database past the checks of its columns.
package enum StoreTampering {
    package static let begin = "PRAGMA ignore_check_constraints = ON"
    package static let end = "PRAGMA ignore_check_constraints = OFF"
}
