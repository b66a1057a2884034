/// No key and no token in a log line or a crash report.
extension ServiceAccount: CustomStringConvertible, CustomDebugStringConvertible {
    var description: String { "service account of \(projectID)" }
    var debugDescription: String { description }
}

extension APNsKey: CustomStringConvertible, CustomDebugStringConvertible {
    var description: String { "key of APNs" }
    var debugDescription: String { description }
}

extension GoogleAccessTokens.Token: CustomStringConvertible, CustomDebugStringConvertible {
    var description: String { "access token \(number)" }
    var debugDescription: String { description }
}
