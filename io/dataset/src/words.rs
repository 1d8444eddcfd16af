//! The vocabulary of synthetic prompts: common words, so that tokenizers need about a token each.

/// 2^8 words, all different.
#[rustfmt::skip]
pub(crate) const WORDS: [&str; 256] = [
    "the", "be", "to", "of", "and", "in", "that", "have", "it", "for", "not", "on", "with", "he",
    "as", "you", "do", "at", "this", "but", "his", "by", "from", "they", "we", "say", "her", "she",
    "or", "an", "will", "my", "one", "all", "would", "there", "their", "what", "so", "up", "out",
    "if", "about", "who", "get", "which", "go", "me", "when", "make", "can", "like", "time", "no",
    "just", "him", "know", "take", "people", "into", "year", "your", "good", "some", "could",
    "them", "see", "other", "than", "then", "now", "look", "only", "come", "its", "over", "think",
    "also", "back", "after", "use", "two", "how", "our", "work", "first", "well", "way", "even",
    "new", "want", "because", "any", "these", "give", "day", "most", "us", "river", "stone",
    "light", "green", "house", "water", "field", "paper", "music", "winter", "summer", "table",
    "window", "garden", "bread", "market", "road", "bridge", "letter", "school", "doctor", "engine",
    "mountain", "forest", "island", "ocean", "valley", "desert", "storm", "cloud", "rain", "snow",
    "wind", "fire", "earth", "metal", "silver", "gold", "iron", "copper", "glass", "wood", "cotton",
    "leather", "morning", "evening", "night", "week", "month", "hour", "minute", "story",
    "question", "answer", "number", "color", "shape", "sound", "voice", "song", "dance", "game",
    "race", "team", "coach", "king", "queen", "child", "mother", "father", "brother", "sister",
    "friend", "neighbor", "teacher", "student", "farmer", "baker", "driver", "pilot", "sailor",
    "soldier", "artist", "writer", "small", "large", "early", "late", "quick", "slow", "warm",
    "cold", "bright", "dark", "heavy", "deep", "high", "low", "long", "short", "young", "old",
    "strong", "soft", "hard", "clean", "quiet", "loud", "walk", "run", "read", "write", "speak",
    "listen", "open", "close", "build", "break", "carry", "bring", "send", "find", "keep", "hold",
    "leave", "follow", "begin", "finish", "learn", "teach", "apple", "orange", "lemon", "coffee",
    "sugar", "butter", "cheese", "horse", "sheep", "tiger", "eagle", "rabbit", "mouse", "flower",
    "tree", "root", "leaf", "seed", "fruit", "corn", "rice", "boat", "ship", "train", "wheel",
    "clock", "chair", "floor",
];
