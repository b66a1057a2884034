/// Test vectors are written in hexadecimal; white space between digits is for the reader.
func hex(_ text: String) -> [UInt8] {
    let digits = text.filter { !$0.isWhitespace }
    precondition(digits.count.isMultiple(of: 2), "odd number of digits in a vector")
    var bytes: [UInt8] = []
    var rest = digits[...]
    while !rest.isEmpty {
        bytes.append(UInt8(rest.prefix(2), radix: 16)!)
        rest = rest.dropFirst(2)
    }
    return bytes
}
